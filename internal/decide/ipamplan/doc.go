// Package ipamplan counts what there is in pools, as the controllers count, and decides what further claims
// would get of them. A plan is tried on a ledger of its own and changes nothing.
package ipamplan
