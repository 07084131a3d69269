"""Pictures as SVG: sheets, marks and labels, of any estimate or analysis."""
