import type { ServerResponse } from 'node:http'
import { Session } from 'node:inspector/promises'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { getHeapSnapshot } from 'node:v8'
import { type PathHandler, sendText } from './http-endpoint.ts'

const defaultSeconds = 30
const longestSeconds = 300

const index = [
  'profile?seconds=30   where time goes, a .cpuprofile for the developer tools of a browser',
  'heap                 what is in memory, a .heapsnapshot for the same',
  '',
].join('\n')

/** Profiles of this process by the paths of Go's pprof, in the engine's own formats; one at a time. */
export function profilingPaths(): Readonly<Record<string, PathHandler>> {
  let isBusy = false
  const alone =
    (make: (response: ServerResponse, url: URL) => Promise<void>): PathHandler =>
    (_request, response, url) => {
      if (isBusy) return sendText(response, 503, 'a profile is being made already\n')
      isBusy = true
      make(response, url)
        .catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
        .finally(() => {
          isBusy = false
        })
    }
  return {
    '/debug/pprof': (_request, response) => {
      response.setHeader('location', '/debug/pprof/')
      sendText(response, 301, 'Moved: /debug/pprof/\n')
    },
    '/debug/pprof/': (_request, response) => sendText(response, 200, index),
    '/debug/pprof/profile': alone((response, url) => sendProfile(response, secondsOf(url))),
    '/debug/pprof/heap': alone((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      return pipeline(getHeapSnapshot(), response)
    }),
  }
}

function secondsOf(url: URL): number {
  const said = Number(url.searchParams.get('seconds') ?? defaultSeconds)
  return said > 0 && said <= longestSeconds ? said : defaultSeconds
}

async function sendProfile(response: ServerResponse, seconds: number): Promise<void> {
  const session = new Session()
  session.connect()
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    await wait(seconds * 1_000, undefined, { signal: gone.signal }).catch(() => {})
    const { profile } = await session.post('Profiler.stop')
    if (!response.destroyed) sendText(response, 200, JSON.stringify(profile), 'application/json')
  } finally {
    session.disconnect()
  }
}
