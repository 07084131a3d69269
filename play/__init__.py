"""All parties as processes on one machine: demonstrations, rehearsals and ready studies."""
