#' A connection: where the service is, and what it is asked with. Nothing is sent yet.
vt_connect <- function(url = Sys.getenv("VEILTAB_URL"), token = Sys.getenv("VEILTAB_TOKEN"),
                       ca = Sys.getenv("VEILTAB_CA"), timeout = 600) {
  if (!grepl("^https://", url)) stop("Give the service's address, https://HOST:PORT, or set VEILTAB_URL.", call. = FALSE)
  if (!nzchar(token)) stop("Give a token of `veiltab researcher token add`, or set VEILTAB_TOKEN.", call. = FALSE)
  if (nzchar(ca) && !file.exists(ca)) stop("There is no file of certificates at ", ca, ".", call. = FALSE)
  structure(list(url = sub("/+$", "", url), token = token, ca = ca, timeout = timeout), class = "vt_desk")
}

print.vt_desk <- function(x, ...) {
  cat("veiltab service at", x$url, "\n")
  invisible(x)
}

# Sends a request; a refusal becomes an R error with the service's own words.
ask <- function(desk, path, query = list(), body = NULL) {
  request <- httr2::request(paste0(desk$url, path, query_text(query)))
  request <- httr2::req_auth_bearer_token(request, desk$token)
  request <- httr2::req_timeout(request, desk$timeout)
  request <- httr2::req_user_agent(request, "veiltab R client")
  if (nzchar(desk$ca)) request <- httr2::req_options(request, cainfo = desk$ca)
  if (!is.null(body)) request <- httr2::req_body_json(request, body)
  answer <- httr2::req_perform(httr2::req_error(request, is_error = function(response) FALSE))
  if (httr2::resp_is_error(answer)) stop(refusal(answer), call. = FALSE)
  answer
}

ask_json <- function(desk, path, query = list(), body = NULL) {
  jsonlite::fromJSON(httr2::resp_body_string(ask(desk, path, query, body)), simplifyDataFrame = FALSE)
}

refusal <- function(response) {
  said <- tryCatch(
    jsonlite::fromJSON(httr2::resp_body_string(response)),
    error = function(e) list(detail = "the answer cannot be read")
  )
  place <- if (length(said$where) && nzchar(said$where)) paste0(said$where, ": ") else ""
  paste0(place, said$detail, ".", if (length(said$remedy) && nzchar(said$remedy)) paste0(" ", said$remedy))
}

# Lists repeat their name; what is NULL is left out.
query_text <- function(query) {
  query <- query[lengths(query) > 0]
  if (!length(query)) return("")
  escaped <- function(text) utils::URLencode(enc2utf8(as_text(text)), reserved = TRUE, repeated = TRUE)
  pairs <- unlist(Map(function(name, values) {
    paste0(escaped(name), "=", vapply(as.list(values), escaped, ""))
  }, names(query), query))
  paste0("?", paste(pairs, collapse = "&"))
}

# Exact numbers travel as texts: what a person wrote, not what a float prints.
as_text <- function(value) {
  if (is.logical(value)) return(tolower(as.character(value)))
  if (is.numeric(value)) return(format(value, digits = 15, scientific = 5, trim = TRUE))
  as.character(value)
}
