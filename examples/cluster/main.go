// Command cluster is a resource manager for many machines, on NATS JetStream.
package main

func main() {}
