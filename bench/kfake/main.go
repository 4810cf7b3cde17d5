// Franz-go's fake Kafka as a server: one broker on 127.0.0.1, everything in memory, until SIGTERM or SIGINT.
//
//	kfake -port 9092
//
// Clients create the topics, with as many partitions as they like. What the library decides is left as it is.
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 9092, "the `port` it listens on")
	flag.Parse()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(*port),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(1),
		kfake.WithLogger(kfake.BasicLogger(os.Stderr, kfake.LogLevelWarn)),
	)
	if err != nil {
		log.Fatal(err)
	}
	<-signals
	cluster.Close()
}
