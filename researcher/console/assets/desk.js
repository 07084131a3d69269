// Sliders beside the numbers of a planning form, and pages that look again while something is computed.
// Without this script numbers are typed and the page is loaded again by hand.
"use strict";

function addSlider(input) {
  const low = Math.log10(Number(input.dataset.least));
  const high = Math.log10(Number(input.dataset.most));
  const isWhole = input.dataset.whole !== undefined;
  const slider = document.createElement("input");
  slider.type = "range";
  slider.className = "slider";
  slider.id = `${input.id}-slider`;
  slider.min = "0";
  slider.max = "1000";
  slider.setAttribute("aria-label", `${input.dataset.name}, slider`);

  function place() {
    const value = Number(input.value);
    if (value > 0) {
      slider.value = String(Math.round(((Math.log10(value) - low) / (high - low)) * 1000));
    }
    slider.setAttribute("aria-valuetext", input.value || "empty");
  }

  slider.addEventListener("input", () => {
    const value = 10 ** (low + (Number(slider.value) / 1000) * (high - low));
    const rounded = Number(value.toPrecision(2));
    input.value = isWhole ? String(Math.round(rounded)) : String(rounded);
    slider.setAttribute("aria-valuetext", input.value);
  });
  slider.addEventListener("change", () => {
    clearTimeout(slider.pause);
    slider.pause = setTimeout(() => submitFrom(slider), 600);
  });
  input.addEventListener("change", place);
  place();
  input.insertAdjacentElement("afterend", slider);
}

function submitFrom(element) {
  sessionStorage.setItem("at", JSON.stringify({ id: element.id, top: window.scrollY }));
  element.form.requestSubmit();
}

function returnToPlace() {
  const kept = sessionStorage.getItem("at");
  if (kept === null) {
    return;
  }
  sessionStorage.removeItem("at");
  const { id, top } = JSON.parse(kept);
  window.scrollTo(0, top);
  const element = document.getElementById(id);
  if (element !== null) {
    element.focus({ preventScroll: true });
  }
}

document.querySelectorAll("input[data-least]").forEach(addSlider);
returnToPlace();
const waiting = document.querySelector("[data-look-again]");
if (waiting !== null) {
  const pause = setTimeout(() => window.location.reload(), Number(waiting.dataset.lookAgain) * 1000);
  // Anyone who begins something else is not interrupted.
  for (const kind of ["click", "input", "submit"]) {
    document.addEventListener(kind, () => clearTimeout(pause));
  }
}
