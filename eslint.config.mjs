// The rules for the explorers' scripts: `make test` runs them. Names that are missing or unused are the type checker's
// and these rules' business; how lines are broken is not.
import js from "@eslint/js";

const BROWSER = [
  "AbortController", "Blob", "document", "Event", "getComputedStyle", "history", "Image", "ImageData",
  "IntersectionObserver", "location", "MutationObserver", "navigator", "OffscreenCanvas", "Path2D", "performance",
  "requestAnimationFrame", "cancelAnimationFrame", "ResizeObserver", "setInterval", "clearInterval", "setTimeout",
  "clearTimeout", "addEventListener", "innerHeight", "scrollY", "TextEncoder", "URL", "URLSearchParams", "window", "Option",
  "XMLSerializer", "atob", "DecompressionStream", "MessageChannel", "Response", "self", "TextDecoder", "Worker",
];

export default [
  js.configs.recommended,
  {
    files: ["code/ropebook/explorers/**/*.js", "book/_static/*.js", "book/_search/*.js"],
    languageOptions: {
      ecmaVersion: "latest",
      sourceType: "module",
      globals: Object.fromEntries(BROWSER.map((name) => [name, "readonly"])),
    },
    rules: {
      eqeqeq: "error",
      "max-len": ["error", { code: 120 }],
      "no-irregular-whitespace": ["error", { skipTemplates: true, skipStrings: true }],
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", caughtErrors: "none" }],
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
  {
    files: ["tools/stills/*.mjs"],
    languageOptions: {
      ecmaVersion: "latest", sourceType: "module",
      globals: Object.fromEntries(["Buffer", "process", "structuredClone"].map((name) => [name, "readonly"])),
    },
    rules: { eqeqeq: "error", "no-var": "error", "prefer-const": ["error", { destructuring: "all" }] },
  },
  {
    files: ["code/ropebook/explorers/*.js"],
    rules: {
      "no-restricted-syntax": ["error", {
        selector: "ObjectExpression:has(> Property[key.name='trait']):has(> Property[key.name='label'])",
        message: "Dials are declared in the Python file of the same name, and imported from there.",
      }],
    },
  },
];
