package component

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	etcdPatience = time.Minute

	// apiserverGrace is how long the API server has to finish open requests.
	// Watches never finish, so this is a limit that is met often.
	apiserverGrace = 2 * time.Second
)

// withEtcd runs etcd for as long as serve runs. They share a process, so the API server gets the
// port that etcd found free, and always ends before its database.
func withEtcd(args []string, serve func(flags []string) error) error {
	var (
		dir, pki string
		noFsync  bool
	)
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	flags.StringVar(&dir, "data-dir", "", "etcd's data")
	flags.StringVar(&pki, "pki-dir", "", "etcd's certificates")
	flags.BoolVar(&noFsync, "unsafe-no-fsync", false, "for data that is not kept")
	if err := flags.Parse(args); err != nil {
		return err
	}

	tls := transport.TLSInfo{
		CertFile:       filepath.Join(pki, "etcd.crt"),
		KeyFile:        filepath.Join(pki, "etcd.key"),
		TrustedCAFile:  filepath.Join(pki, "etcd-ca.crt"),
		ClientCertAuth: true,
	}
	etcd, err := startEtcd(dir, tls, noFsync)
	if err != nil {
		return fmt.Errorf("cannot open etcd's data in %s: %w; restore the directory, or move it away to start empty", dir, err)
	}
	defer etcd.Close()
	closeInTime(etcd)

	return serve([]string{
		"--etcd-servers=https://" + etcd.Clients[0].Addr().String(),
		"--etcd-cafile=" + tls.TrustedCAFile,
		"--etcd-certfile=" + tls.CertFile,
		"--etcd-keyfile=" + tls.KeyFile,
	})
}

func startEtcd(dir string, tls transport.TLSInfo, noFsync bool) (etcd *embed.Etcd, err error) {
	// etcd panics on data that it cannot make sense of.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is damaged: %v", r)
		}
	}()

	if err := checkDatabase(filepath.Join(dir, "member", "snap", "db")); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}

	cfg := embed.NewConfig()
	cfg.Name = "arbor"
	cfg.Dir = dir
	cfg.UnsafeNoFsync = noFsync
	cfg.ClientTLSInfo = tls
	cfg.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	// A cluster of one has no peers: nothing listens for any, and the address
	// below is only the member's name.
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = "5m"
	cfg.QuotaBackendBytes = 8 << 30
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger())

	etcd, err = embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, err
	case <-time.After(etcdPatience):
		etcd.Close()

		return nil, errors.New("it did not become ready in " + etcdPatience.String())
	}
}

// checkDatabase opens etcd's database and closes it again. etcd itself opens
// it in a goroutine, where a panic cannot be caught.
func checkDatabase(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}

	return db.Close()
}

// etcdLogger is quiet, and turns the exit of a fatal log line into a panic, so
// that the reason can be shown.
func etcdLogger() *zap.Logger {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(os.Stderr), zap.WarnLevel)

	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic))
}

// closeInTime closes the database when the API server takes too long to stop by itself, which it
// does as long as any client watches anything.
func closeInTime(etcd *embed.Etcd) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		time.Sleep(apiserverGrace)
		etcd.Close()
		os.Exit(0)
	}()
}
