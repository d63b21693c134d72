/** Loads a module and prints what it cost as JSON; without one, what bare Node costs. */

const [specifier] = process.argv.slice(2)
const began = performance.now()
if (specifier !== undefined) await import(specifier)
const ms = performance.now() - began
console.log(JSON.stringify({ ms, mib: process.memoryUsage.rss() / 1024 / 1024 }))
