"""Runs that produce results, and what turns results into figures, tables and a report."""
