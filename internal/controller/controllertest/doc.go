// Package controllertest tests what controllers do about requests that fail.
//
// [Check] reconciles with a fake client until nothing is left to do. Then it does so again for each
// request and each way in which it can fail: the API server rejects it, or it is carried out and the
// answer is lost. The controller must try again, and in the end everything must be as if no request
// had failed.
package controllertest
