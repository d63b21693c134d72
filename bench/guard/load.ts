import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'

/** What one run of the load found. */
export interface LoadResult {
  readonly perSecond: number
  readonly cpuMicroseconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** What is asked, of whom, and for how long. */
export interface LoadOrder {
  readonly port: number
  readonly token: string | undefined
  readonly pid: number
  readonly connections: number
  readonly seconds: number
}

/** The clock ticks of Linux, in which a process' CPU time is counted. */
const tickMicroseconds = 10_000

/**
 * Sends the same request over and over on each connection. Bytes that were made beforehand and answers that are only
 * measured: the machine is left to the proxy. (Go's client leaves a kubeconfig's token out where there is no TLS.)
 */
export async function runLoad(order: LoadOrder): Promise<LoadResult> {
  const { connections, seconds, pid } = order
  const lines = ['GET / HTTP/1.1', 'Host: app', 'User-Agent: sallyport-load', 'Accept: */*']
  const auth = order.token === undefined ? [] : [`Authorization: Bearer ${order.token}`]
  const bytes = Buffer.from([...lines, ...auth, '', ''].join('\r\n'), 'latin1')
  const run = { until: 0, latencies: [] as number[] }
  const asking = Promise.all(Array.from({ length: connections }, () => ask(order.port, bytes, run)))
  asking.catch(() => {}) // awaited below; until then it must not end the process and leave its children behind
  // The first answers open connections and fill caches.
  const warmUpMs = 500
  run.until = performance.now() + warmUpMs + seconds * 1000
  await new Promise((resolve) => setTimeout(resolve, warmUpMs))
  run.latencies.length = 0
  const before = { at: performance.now(), cpu: await cpuOf(pid) }
  await asking
  const took = performance.now() - before.at
  const cpu = (await cpuOf(pid)) - before.cpu
  const sorted = Float64Array.from(run.latencies).sort()
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  return {
    perSecond: (sorted.length / took) * 1000,
    cpuMicroseconds: cpu / sorted.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  }
}

function ask(
  port: number,
  bytes: Buffer,
  run: { readonly until: number; readonly latencies: number[] },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setNoDelay()
    let sent = 0
    let heard = ''
    const send = (): void => {
      sent = performance.now()
      heard = ''
      socket.write(bytes)
    }
    socket.once('connect', send).once('error', reject)
    socket.once('close', () => reject(new Error('the proxy closed a connection')))
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      heard += chunk
      if (!isWhole(heard)) return
      if (!heard.startsWith('HTTP/1.1 200 '))
        reject(new Error(`the proxy answered ${heard.slice(0, 300)}`))
      run.latencies.push(performance.now() - sent)
      if (run.until === 0 || performance.now() < run.until) send()
      else {
        resolve()
        socket.destroy()
      }
    })
  })
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1]
  return length === undefined ? text.endsWith('0\r\n\r\n') : text.length >= end + 4 + Number(length)
}

/** User and system time of a process with its threads, in microseconds. */
export async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickMicroseconds
}
