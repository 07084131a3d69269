desk <- function() {
  skip_if(!nzchar(Sys.getenv("VEILTAB_URL")), "VEILTAB_URL names no service")
  vt_connect()
}

release <- function() {
  known <- vt_releases(desk())
  skip_if(!any(known$state == "ready"), "no release is ready")
  vt_release(desk(), known$id[known$state == "ready"][1])
}

test_that("a study and a plan are read", {
  study <- vt_study(desk())
  expect_true(nrow(study) > 0)
  plan <- vt_plan(desk(), attributes = study$name[1:2], population = 10000, epsilon = 1, delta = 1e-6)
  expect_true(plan$error > 0)
  expect_output(print(plan), "respondents")
})

test_that("refusals come in the service's words", {
  expect_error(vt_release(desk(), "no-such-release"), "release")
  expect_error(vt_plan(desk(), attributes = "no-such-attribute", population = 1000, epsilon = 1), "no-such-attribute")
  stranger <- vt_connect(token = "vt-00000000-nobody")
  refused <- tryCatch(vt_study(stranger), error = identity)
  expect_match(conditionMessage(refused), "^[^\n]*not known[^\n]*$")
  expect_null(conditionCall(refused))
})

test_that("a table has the numbers of its file", {
  one <- release()
  status <- vt_status(one)
  skip_if(length(status$tables) > 0, "a release of several tables")
  found <- vt_table(one)
  expect_s3_class(found, "vt_estimates")
  query <- list(format = "csv")
  file <- veiltab:::ask(one$desk, veiltab:::release_path(one, "/table"), query)
  plain <- utils::read.csv(text = httr2::resp_body_string(file))
  expect_identical(found$estimate, plain$estimate)
  expect_identical(found$low, plain$low)
  expect_equal(sum(found$estimate), 1)
  given <- attr(found, "labels")[1]
  shares <- vt_ask(one, paste("share of", paste(setdiff(attr(found, "labels"), given), collapse = ", "), "given", given))
  expect_equal(as.numeric(tapply(shares$estimate, shares[[given]], sum)),
               rep(1, length(unique(shares[[given]]))), tolerance = 1e-9)
})

test_that("means are those of the table", {
  one <- release()
  study <- vt_study(desk())
  names <- intersect(study$name[study$is_number], unlist(vt_status(one)$release$attributes))
  skip_if(!length(names), "no numbers")
  found <- vt_ask(one, paste("mean of", names[1]))
  cells <- vt_table(one, names[1])
  points <- suppressWarnings(as.numeric(as.character(cells[[names[1]]])))
  known <- !is.na(points)
  expect_equal(found$estimate, sum(points[known] * cells$estimate[known]) / sum(cells$estimate[known]))
  expect_true(found$low < found$estimate && found$estimate < found$high)
})

test_that("microdata go to survey and mitools", {
  skip_if_not_installed("survey")
  skip_if_not_installed("mitools")
  rows <- vt_microdata(release(), rows = 2000, replicates = 4, seed = "r")
  expect_equal(nrow(rows), 2000)
  again <- vt_microdata(release(), rows = 2000, replicates = 4, seed = "r")
  expect_identical(rows, again)
  design <- vt_svydesign(rows)
  name <- names(rows)[1]
  found <- survey::svymean(stats::reformulate(sprintf("(`%s` == '%s')", name, levels(rows[[name]])[1])), design)
  expect_true(all(survey::SE(found) > 0))
  copies <- vt_imputations(release(), copies = 2, rows = 500, seed = "r")
  expect_equal(length(copies$imputations), 2)
  expect_false(identical(copies$imputations[[1]], copies$imputations[[2]]))
})
