library(testthat)
library(veiltab)

test_check("veiltab")
