package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"tight": strings.NewReplacer("± ", "±\u00a0", "~ ", "~\u00a0").Replace, // a line breaks before them
}).Parse(pageHTML))

// Wide and Narrow return the plot for two widths of the page.
func (f figure) Wide() template.HTML   { return template.HTML(f.svg(wide, false)) }
func (f figure) Narrow() template.HTML { return template.HTML(f.svg(narrow, false)) }

// page writes the page of plots.
func (s *study) page(w io.Writer) error {
	var dark strings.Builder
	for _, c := range colors {
		fmt.Fprintf(&dark, "svg .%[1]s:not(path) { fill: %[2]s } path.%[1]s { stroke: %[2]s }\n", c.class, c.dark)
	}
	return pageTemplate.Execute(w, map[string]any{
		"Title": s.title(), "Outside": s.outside(), "Headline": s.headline(), "Lines": s.lines(), "Note": s.note(),
		"Figures": s.figures(), "Dark": template.CSS(dark.String()),
	})
}
