// Package clitest runs commands on files and objects in memory. Only tests import it.
package clitest
