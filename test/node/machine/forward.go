package machine

import (
	"fmt"
	"io"
	"net"
)

// forward leads connections to one address to another, until this process ends.
func forward(from, to string) error {
	l, err := net.Listen("tcp", from)
	if err != nil {
		return fmt.Errorf("cannot listen where pods look for the API server: %w", err)
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go pass(in, to)
		}
	}()

	return nil
}

// pass copies both ways, and closes both sides when one of them has nothing more to send.
func pass(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to) //nolint:noctx // it is on this machine
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}
