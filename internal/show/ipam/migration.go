package ipam

// A PoolMigration is what is done about one child pool.
type PoolMigration struct {
	Namespace string `json:"namespace"`
	Parent    string `json:"parent"`
	Child     string `json:"child"`
	CIDR      string `json:"cidr"`
	Subnet    string `json:"subnet"`
	Result    string `json:"result"`
	// Message says what is in the way.
	Message string `json:"message"`
}

// A PoolMigrationReport is the result of arbor pools migrate.
type PoolMigrationReport struct {
	Migrations []PoolMigration `json:"migrations"`
	DryRun     bool            `json:"dryRun"`
}
