"""From runs to numbers, figures and pages; `python -m sfr_fa.report` puts them together."""
