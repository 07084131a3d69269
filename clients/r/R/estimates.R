vt_table <- function(release, attributes = character(), confidence = 0.95, absent = "left-out") {
  query <- list(attributes = attributes, confidence = confidence, absent = absent)
  found <- ask_json(release$desk, release_path(release, "/table"), query)
  rows <- setNames(lapply(found$attributes, function(name) {
    whole_or(vapply(found$rows, function(row) row$labels[[name]], ""), function(texts) {
      factor(texts, levels = unlist(found$codebook[[name]]))
    })
  }), found$attributes)
  numbers <- c("estimate", "se", "low", "high", "projected", "estimate_rows", "se_rows", "low_rows", "high_rows")
  estimates(data.frame(rows, number_columns(found$rows, numbers), check.names = FALSE), found$attributes, found,
            title = paste("share of", paste(found$attributes, collapse = ", ")), unit = "share")
}

vt_ask <- function(release, question, confidence = 0.95, absent = "left-out") {
  query <- list(question = question, confidence = confidence, absent = absent)
  found <- ask_json(release$desk, release_path(release, "/analysis"), query)
  labels <- if (length(found$rows)) names(found$rows[[1]]$labels) else character()
  columns <- setNames(lapply(labels, function(name) {
    whole_or(vapply(found$rows, function(row) row$labels[[name]], ""), identity)
  }), labels)
  numbers <- intersect(c("estimate", "low", "high", "projected"), names(found$rows[[1]]))
  frame <- data.frame(columns, number_columns(found$rows, numbers), check.names = FALSE)
  frame$note <- vapply(found$rows, `[[`, "", "note")
  estimates(frame, labels, found, title = found$title, unit = found$unit)
}

# Whole numbers one after the other, such as years, as numbers; other labels as `otherwise` makes them.
whole_or <- function(texts, otherwise) {
  kinds <- unique(texts)
  numbers <- if (all(grepl("^(0|-?[1-9][0-9]{0,8})$", kinds))) as.integer(kinds) else NA
  if (anyNA(numbers) || any(diff(numbers) != 1)) otherwise(texts) else as.integer(texts)
}

number_columns <- function(records, names) {
  data.frame(setNames(lapply(names, function(name) {
    vapply(records, function(one) if (is.null(one[[name]])) NA_real_ else as.numeric(one[[name]]), 0)
  }), names))
}

estimates <- function(frame, labels, found, title, unit) {
  about <- found$release
  structure(frame, class = c("vt_estimates", "data.frame"), labels = labels, title = title, unit = unit,
            confidence = found$confidence, covered = found$covered, remarks = unlist(found$remarks),
            facts = found$facts,
            along = found$along, respondents = about$n, epsilon = about$epsilon, release = about$id, study_digest = found$study_digest)
}

print.vt_estimates <- function(x, ...) {
  cat(attr(x, "title"), "\n\n", sep = "")
  print(as.data.frame(unclass_estimates(x)), ...)
  if (!is.null(attr(x, "confidence"))) {
    cat("\nIntervals ", if (isFALSE(attr(x, "covered"))) "NOT COVERED ", "at ", 100 * attr(x, "confidence"),
        "%, each on its own.\n", sep = "")
  }
  facts <- attr(x, "facts")
  if (length(facts)) cat(paste(names(facts), vapply(facts, format, "", digits = 4), collapse = "; "), "\n")
  for (remark in attr(x, "remarks")) cat(remark, "\n")
  invisible(x)
}

unclass_estimates <- function(x) {
  frame <- as.data.frame(lapply(seq_along(x), function(column) .subset2(x, column)))
  names(frame) <- names(x)
  frame
}

row_labels <- function(x) {
  labels <- intersect(attr(x, "labels"), names(x))
  if (!length(labels)) return(as.character(seq_len(nrow(x))))
  do.call(paste, c(unclass_estimates(x)[labels], sep = ", "))
}

plot.vt_estimates <- function(x, ...) {
  if (length(attr(x, "along")) && nzchar(attr(x, "along"))) return(plot_curves(x, ...))
  labels <- row_labels(x)
  scale <- if (identical(attr(x, "unit"), "share")) 100 else 1
  at <- rev(seq_along(labels))
  ends <- scale * c(x$low, x$high, x$estimate)
  old <- par(mar = c(4, min(20, 2 + max(nchar(labels)) / 2), 3, 1))
  on.exit(par(old))
  plot(range(ends[is.finite(ends)]), c(0.5, length(at) + 0.5), type = "n", yaxt = "n", bty = "n", ylab = "",
       xlab = if (scale == 100) "percent" else "", ...)
  axis(2, at = at, labels = labels, las = 1, tick = FALSE)
  segments(scale * x$low, at, scale * x$high, at, lwd = 2)
  points(scale * x$estimate, at, pch = 19)
  title_of(x)
  invisible(x)
}

plot_curves <- function(x, ...) {
  along <- attr(x, "along")
  times <- suppressWarnings(as.numeric(as.character(x[[along]])))
  if (anyNA(times)) times <- match(x[[along]], unique(x[[along]]))
  others <- setdiff(attr(x, "labels"), along)
  groups <- if (length(others)) do.call(paste, c(unclass_estimates(x)[others], sep = ", ")) else rep("", nrow(x))
  colours <- c(par("fg"), "#c2571a", "#2e7d5b", "#7a4fa3", "#8a6d1d", "#5b6b7a")
  shown <- utils::head(unique(groups), length(colours))
  plot(range(0, times), c(0, 100), type = "n", bty = "n", las = 1, xlab = along, ylab = "percent", ...)
  for (place in seq_along(shown)) {
    of_group <- groups == shown[place]
    rows <- which(of_group & !is.na(x$estimate))
    if (!length(rows)) next
    at <- step_ends(times[of_group], length(rows))
    polygon(c(at, rev(at)), 100 * c(rep(x$low[rows], each = 2), rev(rep(x$high[rows], each = 2))),
            col = adjustcolor(colours[place], 0.18), border = NA)
    lines(c(0, at[1], at), c(100, 100, rep(100 * x$projected[rows], each = 2)), col = colours[place], lty = place, lwd = 2)
  }
  if (length(others)) legend("topright", shown, col = colours, lty = seq_along(shown), lwd = 2, bty = "n")
  title_of(x)
  invisible(x)
}

step_ends <- function(times, known) {
  at <- rep(c(times, 1.02 * max(times))[seq_len(known + 1)], each = 2)
  at[-c(1, length(at))]
}

title_of <- function(x) title(paste(strwrap(attr(x, "title"), 6.5 * par("din")[1]), collapse = "\n"), adj = 0)

tidy.vt_estimates <- function(x, ...) {
  data.frame(term = row_labels(x), estimate = x$estimate,
             std.error = if (is.null(x$se)) NA_real_ else x$se, conf.low = x$low, conf.high = x$high)
}

glance.vt_estimates <- function(x, ...) {
  known <- function(name, missing) if (is.null(attr(x, name))) missing else attr(x, name)
  data.frame(nobs = known("respondents", NA_real_), epsilon = known("epsilon", NA_character_),
             confidence = known("confidence", NA_real_), release = known("release", NA_character_))
}
