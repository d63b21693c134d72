import { contestants } from './contestants.ts'

/** Runs one contestant for some seconds and prints what it did as JSON. */

const [name = '', kubeconfig = '', concurrency = '1', seconds = '3'] = process.argv.slice(2)
const get = await contestants[name]?.(kubeconfig)
if (!get) throw new Error(`there is no contestant ${name}`)

async function run(ms: number): Promise<number[]> {
  const end = performance.now() + ms
  const times: number[] = []
  const one = async (): Promise<void> => {
    for (let now = performance.now(); now < end; ) {
      await get?.()
      const then = performance.now()
      times.push(then - now)
      now = then
    }
  }
  await Promise.all(Array.from({ length: Number(concurrency) }, one))
  return times
}

await run(1_000)
const began = performance.now()
const cpu = process.cpuUsage()
const times = (await run(Number(seconds) * 1000)).sort((a, b) => a - b)
const used = process.cpuUsage(cpu)
const elapsed = performance.now() - began
const cpuMicros = used.user + used.system
console.log(
  JSON.stringify({
    perSecond: (times.length / elapsed) * 1000,
    cpuMicros: cpuMicros / times.length,
    perCpuSecond: (times.length / cpuMicros) * 1e6,
    p50: times[Math.floor(times.length / 2)],
    p99: times[Math.floor(times.length * 0.99)],
  }),
)
process.exit()
