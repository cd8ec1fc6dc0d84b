"use strict";
(() => {
  const PRINT_WIDTH = 330;
  const charts = [...document.querySelectorAll(".chart")];
  const buttons = [...document.querySelectorAll(".switch button")];
  const figures = new Map();
  const touch = matchMedia("(pointer: coarse)").matches;
  let axis = buttons.length ? buttons[0].value : "";

  // a figure whose axis can be switched keeps one x for each line; bands come first, and run there and back
  const columns = ({ axes }) => [...axes[axis].x.map((x) => [...x, ...[...x].reverse()]), ...axes[axis].x];
  const describe = (chart, figure) => {
    const along = figure.axes ? figure.axes[axis].title : figure.along;
    chart.setAttribute("aria-label", along ? `${figure.title}, along ${along}. ${figure.ends}` : figure.title);
  };

  function draw(chart) {
    if (figures.has(chart)) return;
    const figure = JSON.parse(chart.nextElementSibling.textContent);
    figures.set(chart, figure);
    if (figure.axes) {
      columns(figure).forEach((x, index) => { figure.data[index].x = x; });
      figure.layout.xaxis.title.text = figure.axes[axis].title;
      figure.layout.xaxis.hoverformat = figure.axes[axis].format;
    }
    if (touch) figure.layout.dragmode = false; // a finger scrolls the page; the buttons zoom
    Plotly.newPlot(chart, figure.data, figure.layout, { ...figure.config, displayModeBar: touch ? true : "hover" });
    describe(chart, figure);
  }

  function choose(button) {
    axis = button.value;
    buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
    for (const [chart, figure] of figures) {
      if (!figure.axes) continue;
      const { title, format } = figure.axes[axis];
      const layout = { "xaxis.title.text": title, "xaxis.hoverformat": format, "xaxis.autorange": true };
      Plotly.update(chart, { x: columns(figure) }, layout);
      describe(chart, figure);
    }
  }

  buttons.forEach((button) => button.addEventListener("click", () => choose(button)));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "800px" });
  charts.forEach((chart) => seen.observe(chart));

  // paper is narrower than the screen, and shows what nobody has scrolled to
  function onto(paper) {
    for (const chart of charts) {
      if (chart.closest("details:not([open])")) continue;
      draw(chart);
      Plotly.relayout(chart, paper ? { autosize: false, width: PRINT_WIDTH } : { autosize: true, width: null });
    }
  }
  matchMedia("print").addEventListener("change", (event) => onto(event.matches));
  addEventListener("beforeprint", () => onto(true));
  addEventListener("afterprint", () => onto(false));
})();
