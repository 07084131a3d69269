test_that("a connection wants an address and a token", {
  expect_error(vt_connect("http://localhost:1", token = "vt"), "https://")
  expect_error(vt_connect("https://localhost:1", token = ""), "token")
  expect_error(vt_connect("https://localhost:1", token = "vt", ca = "/nowhere"), "no file")
  expect_output(print(vt_connect("https://localhost:1/", token = "vt", ca = "")), "https://localhost:1 ")
})

test_that("queries repeat lists, leave out what is missing, and escape everything", {
  query <- veiltab:::query_text
  expect_equal(query(list()), "")
  expect_equal(query(list(a = NULL, b = character())), "")
  expect_equal(query(list(attributes = c("a b", "c&d"), delta = 1e-6, partial = TRUE)),
               "?attributes=a%20b&attributes=c%26d&delta=0.000001&partial=true")
  expect_equal(query(list(population = 1000000, epsilon = "0.5", x = "100%")), "?population=1000000&epsilon=0.5&x=100%25")
})

test_that("estimates print, plot and tidy", {
  found <- list(confidence = 0.95, release = list(n = 10, epsilon = "1", id = "ab"), remarks = list("Mind this."))
  x <- veiltab:::estimates(data.frame(sex = c("f", "m"), estimate = c(1, 2), low = c(0, NA), high = c(2, NA)), "sex",
                           found, "mean of pay", "number")
  expect_output(print(x), "mean of pay.*Mind this")
  pdf(NULL)
  expect_invisible(plot(x))
  dev.off()
  skip_if_not_installed("generics")
  expect_equal(generics::tidy(x)$term, c("f", "m"))
  expect_equal(generics::glance(x)$nobs, 10)
})

test_that("a curve is drawn in steps along its time, each group as far as it was followed", {
  frame <- data.frame(arm = rep(c("old", "new"), each = 3), months = rep(c("0", "1", "2"), 2),
                      estimate = c(.9, .8, .7, .8, .6, NA), low = c(.8, .7, .6, .7, .5, NA),
                      high = c(1, .9, .8, .9, .7, NA), projected = c(.9, .8, .7, .8, .6, NA))
  x <- veiltab:::estimates(frame, c("arm", "months"), list(confidence = 0.95, along = "months"), "share without", "share")
  pdf(NULL)
  expect_invisible(plot(x))
  dev.off()
  expect_equal(veiltab:::step_ends(0:2, 3), c(0, 1, 1, 2, 2, 2.04))
  expect_equal(veiltab:::step_ends(0:2, 2), c(0, 1, 1, 2))
})

test_that("labels that are whole numbers one after the other are numbers", {
  expect_identical(veiltab:::whole_or(c("3", "4", "3"), identity), c(3L, 4L, 3L))
  expect_identical(veiltab:::whole_or(c("07", "08"), identity), c("07", "08"))
  expect_identical(veiltab:::whole_or(c("1", "3"), factor), factor(c("1", "3")))
})

test_that("intervals that are not covered say so", {
  found <- list(release = list(n = 9), confidence = 0.95, covered = FALSE, facts = list(statistic = 211.3005))
  frame <- data.frame(estimate = 0.5, low = 0.4, high = 0.6)
  shown <- veiltab:::estimates(frame, character(), found, title = "made", unit = "share")
  expect_output(print(shown), "Intervals NOT COVERED at 95%.*statistic 211.3")
})
