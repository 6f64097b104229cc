// Opens the report of a run or of a study in headless Chromium and checks what unit tests cannot: that a browser
// accepts it, loads nothing, shows every figure, answers to hovering and to the keyboard, fits a phone, keeps its text
// readable against the background in both colour schemes, and that its contents lead somewhere.
//
//   node .ci/check_report.mjs report.html [--screenshots folder] [--figures curve,calibration,bound,prediction-1]
//
// Without --figures every figure of the page is expected to be drawn, and at least one must be there. A stand-alone
// figure (an .svg file) may be given too; it is only checked for marks, network requests and errors.
// Needs node, npm and Chromium (CHROMIUM, default /usr/bin/chromium). The browser driver is installed, in a fixed
// version, into a folder beside the temporary files (CHECK_REPORT_CACHE chooses another).

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const DRIVER = "1.64.1";
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
// Without these Chromium itself talks to the network in the background.
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

function options(argv) {
  const out = { file: undefined, screenshots: undefined, figures: undefined };
  for (let i = 0; i < argv.length; i += 1) {
    if (argv[i] === "--screenshots") out.screenshots = resolve(argv[(i += 1)]);
    else if (argv[i] === "--figures") out.figures = argv[(i += 1)].split(",");
    else if (argv[i].startsWith("--") || out.file) throw new Error(`unknown argument ${argv[i]}`);
    else out.file = resolve(argv[i]);
  }
  if (!out.file || !existsSync(out.file)) {
    console.error("usage: check_report.mjs report.html [--screenshots folder] [--figures id,id]");
    process.exit(2);
  }
  return out;
}

function driver() {
  const home = process.env.CHECK_REPORT_CACHE ?? join(tmpdir(), `pacmeta-browser-driver-${DRIVER}`);
  if (!existsSync(join(home, "node_modules", "playwright-core"))) {
    mkdirSync(home, { recursive: true });
    const command = ["install", "--prefix", home, "--no-audit", "--no-fund", "--ignore-scripts", `playwright-core@${DRIVER}`];
    execFileSync("npm", command, { stdio: ["ignore", "ignore", "inherit"], cwd: home });
  }
  return createRequire(join(home, "package.json"))("playwright-core");
}

const failures = [];
let checks = 0;
function check(holds, what) {
  checks += 1;
  if (!holds) failures.push(what);
}

async function open(browser, file, settings) {
  const context = await browser.newContext(settings);
  const page = await context.newPage();
  const requests = [];
  const errors = [];
  const url = pathToFileURL(file).href;
  page.on("request", (r) => r.url() !== url && !r.url().startsWith("data:") && requests.push(r.url()));
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && errors.push(m.text()));
  page.on("pageerror", (e) => errors.push(String(e)));
  await page.goto(url);
  return { context, page, requests, errors };
}

/** Marks and extent of each shown chart of each figure, as the browser laid them out. */
const measure = () =>
  [...document.querySelectorAll("figure")].map((figure) => {
    const shown = [...figure.querySelectorAll("svg.chart")].filter((s) => s.getBoundingClientRect().width > 0);
    const svg = shown[0];
    if (!svg) return { id: figure.id, shown: 0 };
    const marks = [...svg.querySelectorAll("path, circle, rect")].filter((e) => !e.closest("defs, clipPath"));
    const drawn = marks.filter((e) => {
      const box = e.getBoundingClientRect();
      return box.width + box.height > 0;
    });
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    // Text far outside its drawing would cover something else or be cut.
    const stray = [...svg.querySelectorAll("text")].filter((t) => {
      const b = t.getBoundingClientRect();
      return b.left < box.left - 3 || b.right > box.right + 3 || b.bottom > box.bottom + 3;
    });
    return {
      id: figure.id,
      shown: shown.length,
      area: view.width * view.height,
      width: box.width,
      drawn: drawn.length,
      data: svg.querySelectorAll("[data-tip]").length,
      empty: svg.querySelector(".void") !== null,
      name: svg.getAttribute("aria-label") ?? "",
      text: svg.querySelector("desc")?.textContent ?? "",
      role: svg.getAttribute("role"),
      textSize: Math.min(...[...svg.querySelectorAll("text")].map((t) => (parseFloat(getComputedStyle(t).fontSize) * box.width) / view.width)),
      stray: stray.map((t) => t.textContent),
    };
  });

function checkFigures(figures, expected, where) {
  const ids = expected ?? figures.map((f) => f.id);
  check(ids.length > 0, `${where}: no figures`);
  for (const id of ids) {
    const f = figures.find((g) => g.id === id);
    check(f !== undefined, `${where}: figure ${id} is missing`);
    if (!f) continue;
    check(f.shown === 1, `${where}: ${id} shows ${f.shown} drawings, expected one`);
    check(f.area > 0 && f.width > 200, `${where}: ${id} has no extent`);
    check(!f.empty && f.drawn > 5 && f.data > 0, `${where}: ${id} has ${f.drawn} marks, ${f.data} with values`);
    check(f.role === "img" && f.text.length > 20, `${where}: ${id} is not described`);
    check(f.textSize >= 10, `${where}: ${id} has text of ${f.textSize} px`);
    check(f.stray?.length === 0, `${where}: ${id} has text outside the drawing: ${f.stray}`);
  }
}

/** What holds for the text around the figures: headings in order, links that lead somewhere, tables with headers. */
const outline = () => {
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((h) => Number(h.tagName[1]));
  const targets = [...document.querySelectorAll('a[href^="#"]')].map((a) => a.getAttribute("href").slice(1));
  const folded = [...document.querySelectorAll("details")];
  for (const one of folded) one.open = true;
  const tables = [...document.querySelectorAll("table")];
  const found = {
    titles: levels.filter((l) => l === 1).length,
    skipped: levels.some((l, i) => i > 0 && l > levels[i - 1] + 1),
    lost: targets.filter((id) => document.getElementById(id) === null),
    bare: tables.filter((t) => [...t.querySelectorAll("th")].length === 0 || t.querySelector("th:not([scope])")).length,
    // Wide tables scroll in a box of their own, folded ones too.
    overflow: document.documentElement.scrollWidth - innerWidth,
    verdicts: [...document.querySelectorAll(".verdict")].filter((v) => !v.querySelector("svg path") || !v.textContent.trim()).length,
  };
  for (const one of folded) one.open = false;
  return found;
};

function checkOutline(found, where) {
  check(found.titles === 1 && !found.skipped, `${where}: headings skip a level, or there is not one title`);
  check(found.lost.length === 0, `${where}: links lead nowhere: ${found.lost}`);
  check(found.bare === 0, `${where}: ${found.bare} tables without proper headers`);
  check(found.overflow <= 0, `${where}: with folded tables open the page is ${found.overflow} px wider than the screen`);
  check(found.verdicts === 0, `${where}: ${found.verdicts} verdicts without a word or a shape`);
}

/** Texts whose contrast with what lies behind them is below 4.5, the limit for people with low vision. */
const pale = () => {
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
      if (a > 0.5) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const out = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
    // Values inside bars stand on the colour of a series; they are compared with it below.
    if (!own || element.getBoundingClientRect().width === 0 || element.closest("script, style, desc, .inside, .tip")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(element instanceof SVGElement ? style.fill : style.color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) out.push(`${element.textContent.trim().slice(0, 30)} (${contrast.toFixed(2)})`);
  }
  const probe = document.createElement("span");
  document.body.append(probe);
  const paper = light(parse(getComputedStyle(document.documentElement).backgroundColor));
  for (let slot = 0; slot < 8; slot += 1) {
    probe.className = `s${slot}`;
    const series = light(parse(getComputedStyle(probe).color));
    const contrast = (Math.max(series, paper) + 0.05) / (Math.min(series, paper) + 0.05);
    if (contrast < 4.5) out.push(`series ${slot} (${contrast.toFixed(2)})`);
  }
  probe.remove();
  return out;
};

async function checkTips(page, where) {
  const svgs = await page.locator("figure svg.chart:visible").all();
  for (const svg of svgs) {
    const name = await svg.evaluate((s) => s.closest("figure").id);
    const tip = page.locator(".tip");
    await svg.scrollIntoViewIfNeeded();
    // The first mark inside the frame; marks cut off by it cannot be reached with a pointer.
    const spot = await svg.evaluate((s) => {
      const frame = s.getBoundingClientRect();
      for (const mark of s.querySelectorAll("[data-tip]")) {
        const box = mark.getBoundingClientRect();
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        if (x > frame.left && x < frame.right && y > frame.top && y < frame.bottom && y > 0 && y < innerHeight) return { x, y };
      }
      return null;
    });
    check(spot !== null, `${where}: ${name} has no mark to hover over`);
    if (!spot) continue;
    await page.mouse.move(spot.x, spot.y);
    check((await tip.isVisible()) && (await tip.textContent()).length > 3, `${where}: no tooltip over ${name}`);
    const box = await tip.boundingBox();
    const width = page.viewportSize().width;
    check(box && box.x >= 0 && box.x + box.width <= width, `${where}: tooltip of ${name} leaves the page`);
    await page.mouse.move(1, 1);
    check(await tip.isHidden(), `${where}: tooltip of ${name} stays`);
    // Keyboard: tab to the drawing as a reader would, then walk along the marks.
    await svg.evaluate((s) => s.focus({ focusVisible: true }));
    await page.keyboard.press("ArrowRight");
    const first = await tip.textContent();
    await page.keyboard.press("End");
    check((await tip.isVisible()) && first.length > 3, `${where}: no tooltip on keyboard focus of ${name}`);
    await page.keyboard.press("Escape");
    check(await tip.isHidden(), `${where}: Escape does not close the tooltip of ${name}`);
    await svg.evaluate((s) => s.blur());
  }
}

async function main() {
  const { file, screenshots, figures } = options(process.argv.slice(2));
  const { chromium } = driver();
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  if (screenshots) mkdirSync(screenshots, { recursive: true });
  const views = [
    { name: "light", viewport: { width: 1100, height: 900 }, colorScheme: "light" },
    { name: "dark", viewport: { width: 1100, height: 900 }, colorScheme: "dark" },
    { name: "wide", viewport: { width: 1400, height: 900 }, colorScheme: "light" },
    { name: "narrow", viewport: { width: 360, height: 740 }, colorScheme: "light", deviceScaleFactor: 2 },
    { name: "smallest", viewport: { width: 320, height: 568 }, colorScheme: "dark" },
    { name: "no-script", viewport: { width: 700, height: 900 }, colorScheme: "light", javaScriptEnabled: false },
  ];
  const isFigure = file.endsWith(".svg");
  const backgrounds = {};
  try {
    for (const { name, ...settings } of views) {
      const { context, page, requests, errors } = await open(browser, file, settings);
      const scripted = settings.javaScriptEnabled !== false;
      if (isFigure) {
        const marks = await page.evaluate(() => document.querySelectorAll("path, circle, rect").length);
        check(marks > 5, `${name}: ${marks} marks`);
        backgrounds[name] = await page.evaluate(() => getComputedStyle(document.querySelector(".paper")).fill);
      } else {
        backgrounds[name] = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        check(overflow <= 0, `${name}: the page is ${overflow} px wider than the screen`);
        if (scripted) {
          checkOutline(await page.evaluate(outline), name);
          const faint = await page.evaluate(pale);
          check(faint.length === 0, `${name}: too little contrast: ${faint.slice(0, 5).join(", ")}`);
          checkFigures(await page.evaluate(measure), figures, name);
          await checkTips(page, name);
        } else {
          const titles = await page.evaluate(() => document.querySelectorAll("svg.chart [class] > title").length);
          check(titles > 0, `${name}: no hover titles without scripts`);
        }
      }
      if (screenshots) {
        const stem = isFigure ? `${basename(file, ".svg")}-${name}` : name;
        await page.evaluate(() => scrollTo(0, 0));
        await page.screenshot({ path: join(screenshots, `${stem}.png`), fullPage: !isFigure });
      }
      if (name === "light" && !isFigure) {
        const pdf = await page.pdf({ format: "A4", ...(screenshots ? { path: join(screenshots, "print.pdf") } : {}) });
        check(pdf.length > 10_000, `print: ${pdf.length} bytes of PDF`);
      }
      check(errors.length === 0, `${name}: console: ${errors.join("; ")}`);
      check(requests.length === 0, `${name}: requests: ${requests.join(", ")}`);
      await context.close();
    }
    check(backgrounds.light !== backgrounds.dark, "light and dark look the same");
  } finally {
    await browser.close();
  }
  for (const failure of failures) console.error(`FAILED ${failure}`);
  console.log(`${basename(file)}: ${checks - failures.length} of ${checks} browser checks passed`);
  process.exitCode = failures.length === 0 ? 0 : 1;
}

await main();
