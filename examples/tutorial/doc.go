// Package tutorial tests the pages in docs: a page shows what the programs here are and print.
package tutorial
