vt_study <- function(desk) {
  known <- ask_json(desk, "/v1/study")
  attributes <- do.call(rbind, lapply(known$attributes, function(one) {
    data.frame(name = one$name, owner = one$owner, categories = length(one$categories), is_number = one$is_number)
  }))
  structure(attributes, title = known$title, digest = known$digest,
            codebook = setNames(lapply(known$attributes, `[[`, "categories"), attributes$name))
}

vt_plan <- function(desk, attributes = character(), population = NULL, epsilon = NULL, delta = NULL, error = NULL,
                    shape = "table", cells = NULL, asked = "error") {
  query <- list(attributes = attributes, population = population, epsilon = epsilon, delta = delta, error = error,
                shape = shape, cells = cells, asked = asked)
  structure(ask_json(desk, "/v1/plan", query), class = "vt_plan")
}

print.vt_plan <- function(x, ...) {
  delta <- if (is.null(x$delta)) "pure" else paste("at delta", format(x$delta))
  cat("epsilon", format(x$epsilon), delta, "for", format(x$population, big.mark = ","), "respondents,", x$tables,
      if (x$tables == 1) "table of" else "tables of", x$cells, "cells\n")
  cat("expected error:", format(x$error), if (is.null(x$cell_error)) "(total variation of a typical pair)" else
    paste0("(all cells together); of one share: ", format(100 * x$cell_error), " percentage points"), "\n")
  if (!is.null(x$share)) cat("part of a curator's budget:", format(100 * x$share, digits = 3), "%\n")
  cat(x$advice, "\n")
  invisible(x)
}

vt_releases <- function(desk) {
  rows <- list()
  after <- NULL
  repeat {
    page <- ask_json(desk, "/v1/releases", list(after = after))
    rows <- c(rows, lapply(page$releases, function(one) release_row(one$release)))
    after <- page$`next`
    if (is.null(after)) break
  }
  if (!length(rows)) return(data.frame(id = character(), label = character(), state = character(),
                                       epsilon = character(), attributes = character()))
  do.call(rbind, rows)
}

release_row <- function(about) {
  data.frame(id = about$id, label = about$label, state = about$state, epsilon = about$epsilon,
             attributes = paste(about$attributes, collapse = ", "))
}

vt_release <- function(desk, name) {
  about <- ask_json(desk, paste0("/v1/releases/", utils::URLencode(name, reserved = TRUE)))$release
  structure(list(desk = desk, id = about$id), class = "vt_release")
}

vt_status <- function(release, wait = 0) {
  ask_json(release$desk, release_path(release), list(wait = as.integer(wait)))
}

print.vt_release <- function(x, ...) {
  about <- vt_status(x)$release
  cat("release", x$id, about$label, "\n", about$state, ": ", paste(about$attributes, collapse = ", "), " at epsilon ",
      about$epsilon, "\n", sep = " ")
  invisible(x)
}

vt_request <- function(desk, attributes = character(), epsilon, delta = NULL, purpose = "", label = "", ...,
                       wait = TRUE, timeout = 3600) {
  body <- list(attributes = as.list(attributes), epsilon = as_text(epsilon), purpose = purpose, label = label, ...)
  if (!is.null(delta)) body$delta <- as_text(delta)
  about <- ask_json(desk, "/v1/releases", body = lapply(body, unboxed))$release
  release <- structure(list(desk = desk, id = about$id), class = "vt_release")
  end <- Sys.time() + timeout
  while (wait) {
    status <- vt_status(release, wait = 20)
    if (status$release$state %in% c("ready", "failed", "denied", "expired")) break
    if (Sys.time() > end) stop("The release goes on, and is not ready yet: ", waits_for(status), call. = FALSE)
    message(status$release$state, ": ", waits_for(status))
  }
  if (wait && status$release$state != "ready") stop(status$failure, call. = FALSE)
  release
}

unboxed <- function(value) if (is.list(value) || length(value) != 1) value else jsonlite::unbox(value)

waits_for <- function(status) {
  waits <- vapply(status$parties, `[[`, "", "waiting_for")
  paste(names(waits)[nzchar(waits)], waits[nzchar(waits)], collapse = "; ")
}

release_path <- function(release, part = "") paste0("/v1/releases/", release$id, part)
