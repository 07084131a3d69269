vt_microdata <- function(release, rows = NULL, replicates = 20, seed = NULL, attributes = character()) {
  query <- list(rows = rows, replicates = replicates, seed = seed, attributes = attributes)
  answer <- ask(release$desk, release_path(release, "/microdata"), query)
  frame <- read_rows(answer)
  attr(frame, "replicates") <- grep("^replicate_+[0-9]+$", names(frame), value = TRUE)
  frame
}

vt_svydesign <- function(microdata) {
  if (!requireNamespace("survey", quietly = TRUE)) stop("Install the package survey.", call. = FALSE)
  columns <- attr(microdata, "replicates")
  if (!length(columns)) stop("Draw the microdata with replicates.", call. = FALSE)
  count <- length(columns)
  weight <- setdiff(grep("^weight_*$", names(microdata), value = TRUE), attr(microdata, "attributes"))[1]
  survey::svrepdesign(data = microdata, weights = microdata[[weight]], repweights = as.matrix(microdata[columns]),
                      type = "other", scale = 1 / count, rscales = rep(1, count), combined.weights = TRUE, mse = TRUE,
                      degf = count)
}

vt_imputations <- function(release, copies = 20, rows = NULL, seed = NULL, attributes = character()) {
  if (!requireNamespace("mitools", quietly = TRUE)) stop("Install the package mitools.", call. = FALSE)
  query <- list(rows = rows, copies = copies, seed = seed, attributes = attributes)
  frame <- read_rows(ask(release$desk, release_path(release, "/microdata"), query))
  mitools::imputationList(unname(lapply(split(frame, frame$copy), function(one) {
    one$copy <- NULL
    rownames(one) <- NULL
    one
  })))
}

read_rows <- function(answer) {
  seed <- httr2::resp_header(answer, "Veiltab-Seed")
  frame <- utils::read.csv(text = httr2::resp_body_string(answer), check.names = FALSE, stringsAsFactors = TRUE)
  attr(frame, "seed") <- utils::URLdecode(seed)
  attr(frame, "warning") <- httr2::resp_header(answer, "Veiltab-Warning")
  message(attr(frame, "warning"))
  frame
}
