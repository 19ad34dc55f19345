module github.com/joblife/joblife/examples

go 1.25.0

require github.com/joblife/joblife v0.0.0

replace github.com/joblife/joblife => ../
