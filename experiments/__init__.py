"""The paper: its experiments, and what turns results into figures, tables and a report."""
