# Imported by analysis, client, collection, commands, deploy, estimates, microdata, numbers, play, report, survival;
# may import records, status and what is below.
"""Pictures as SVG: sheets, marks and labels, of any estimate or analysis."""
