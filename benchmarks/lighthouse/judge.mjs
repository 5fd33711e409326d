// Lighthouse on pages: node judge.mjs CHROMIUM ADDRESS ... prints a line of JSON for each page and screen.

import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const [chromePath, ...addresses] = process.argv.slice(2);
const chrome = await launch({ chromePath, chromeFlags: [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
] });
const milliseconds = (audit) => Math.round(audit.numericValue);
for (const address of addresses) {
  for (const [screen, config] of [["desktop", desktopConfig], ["phone", undefined]]) {
    const { lhr } = await lighthouse(address, { port: chrome.port, logLevel: "error", output: [] }, config);
    const { audits, categories } = lhr;
    // What weighs in a score and was not passed whole, save the times that make up the performance.
    const failed = Object.entries(categories).filter(([name]) => name !== "performance").flatMap(([, { auditRefs }]) => {
      return auditRefs.filter(({ id, weight }) => weight > 0 && audits[id].score !== null && audits[id].score < 1)
        .map(({ id }) => id);
    });
    console.log(JSON.stringify({
      address,
      screen,
      version: lhr.lighthouseVersion,
      benchmark_index: lhr.environment.benchmarkIndex, // how fast this machine was; 1300 and more is a fast desk's
      scores: Object.fromEntries(Object.values(categories).map(({ id, score }) => [id, Math.round(100 * score)])),
      failed,
      first_contentful_paint_ms: milliseconds(audits["first-contentful-paint"]),
      largest_contentful_paint_ms: milliseconds(audits["largest-contentful-paint"]),
      total_blocking_time_ms: milliseconds(audits["total-blocking-time"]),
      cumulative_layout_shift: Number(audits["cumulative-layout-shift"].numericValue.toFixed(3)),
    }));
  }
}
await chrome.kill();
