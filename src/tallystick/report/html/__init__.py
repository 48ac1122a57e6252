"""Answers as HTML: sections and standalone pages, tables for notebooks, formulas in MathML."""
