import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { depsWith, type Running, serve } from './pipeline.suite.ts'

const running: Running[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

/** The signals that requests on one connection got, one after the other. */
async function signalsOf(
  paths: readonly string[],
  use: (signal: AbortSignal) => void = () => {},
): Promise<AbortSignal[]> {
  const signals: AbortSignal[] = []
  const server = await serve(
    'HTTP/1.1',
    depsWith({
      requestTimeoutMs: 50,
      resources(_request, response, signal) {
        signals.push(signal)
        use(signal)
        if (!paths[signals.length - 1]?.endsWith('slow')) response.end()
      },
    }),
  )
  running.push(server)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (const path of paths) {
    const headers = { authorization: 'Bearer ann' }
    const [incoming] = await once(
      request({ agent, port: server.port, path, headers }).end(),
      'response',
    )
    await once(incoming.resume(), 'close')
  }
  agent.destroy()
  return signals
}

const pod = '/api/v1/namespaces/a/pods/b'

describe('requests of one connection share a signal', () => {
  test('while nobody listens to it', async () => {
    const [first, second] = await signalsOf([pod, pod])
    expect(second).toBe(first)
  })

  test('but not one that somebody still listens to', async () => {
    const [first, second] = await signalsOf([pod, pod], (signal) => {
      signal.addEventListener('abort', () => {})
    })
    expect(second).not.toBe(first)
  })

  test('nor one that was aborted', async () => {
    const [first, second] = await signalsOf([`${pod}slow`, pod])
    expect(second).not.toBe(first)
    expect([first?.aborted, second?.aborted]).toEqual([true, false])
  })

  test('nor one of a watch', async () => {
    const [first, second] = await signalsOf(['/api/v1/pods?watch=1', pod])
    expect(second).not.toBe(first)
  })
})

test('requests of different connections never share a signal', async () => {
  const [[first], [second]] = [await signalsOf([pod]), await signalsOf([pod])]
  expect(first).not.toBe(second)
})
