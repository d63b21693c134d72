import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import { Fairness } from '../fairness/fairness.ts'
import { defaultFairnessLimits } from '../limits.ts'
import {
  type DepsChanges,
  depsWith,
  fakeRevocations,
  identity,
  type Running,
  recordingAudit,
  serve,
  textOf,
} from './pipeline.suite.ts'

const versions = ['HTTP/1.1', 'HTTP/2'] as const
const bearer = (name: string) => ({ headers: { authorization: `Bearer ${name}` } })
const pods = '/api/v1/namespaces/a/pods'
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

async function start(
  changes: DepsChanges = {},
  version: (typeof versions)[number] = 'HTTP/1.1',
): Promise<Running> {
  const server = await serve(version, depsWith(changes))
  running.push(server)
  return server
}

const denying: NonNullable<DepsChanges['authorizer']> = {
  authorize: () => Promise.resolve({ allowed: false, reason: 'not today' }),
  rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
}

describe('every request has an end', () => {
  test.each([
    ['1ms', 504],
    ['0s', 200],
    ['1h', 200],
    ['soon', 400],
  ])('a client may ask for less time: timeout=%s gives %i', async (timeout, code) => {
    const server = await start({
      resources: async (_request, response, signal) => {
        await Promise.race([
          once(signal, 'abort'),
          new Promise((resolve) => setTimeout(resolve, 50)),
        ])
        response.end()
      },
    })
    expect((await server.ask(`${pods}?timeout=${timeout}`, bearer('ann'))).code).toBe(code)
  })

  test('a watch may last longer than a request, but not longer than its credential', async () => {
    const server = await start({
      requestTimeoutMs: 1,
      authenticator: {
        name: 'short',
        authenticate: () => identity('ann', { expiresAt: Date.now() + 60 }),
      },
      resources: (_request, response) => {
        response.write('event')
      },
    })
    const watch = request({ port: server.port, path: `${pods}?watch=1`, agent: false }).end()
    const [incoming] = await once(watch, 'response')
    const startedAt = performance.now()
    await expect(textOf(incoming)).rejects.toThrow('aborted')
    expect(performance.now() - startedAt).toBeGreaterThan(20)
  })

  test('when the client goes, the work is stopped and the place is free again', async () => {
    const fairness = new Fairness(defaultFairnessLimits)
    const audit = recordingAudit()
    const ended = withResolvers()
    const server = await start({
      fairness,
      audit: {
        ...audit,
        complete(exchange) {
          audit.complete(exchange)
          ended.resolve(undefined)
        },
      },
      resources: (_request, _response, signal) => {
        client.destroy()
        return once(signal, 'abort').then(() => {})
      },
    })
    const client = request({ port: server.port, path: pods, agent: false, ...bearer('ann') }).end()
    client.on('error', () => {})
    await ended.promise
    expect(fairness.running('readOnly')).toBe(0)
    expect(audit.stages.map(({ stage, code }) => [stage, code])).toEqual([
      ['received', 499],
      ['complete', 499],
    ])
  })

  test.each([
    ['the user', 'ann', 'ann'],
    ['who impersonates the user', 'ann', 'root'],
  ])('revocation of %s cuts what is open, and only that', async (_name, username, revoked) => {
    const revocations = fakeRevocations()
    const server = await start({
      onRevoked: revocations.onRevoked,
      impersonate: (_request, authentication) =>
        authentication.user.username === 'root' ? identity(username) : authentication,
      resources: (_request, response) => {
        response.write('event')
      },
    })
    const open = async (name: string) => {
      const path = `${pods}?watch=1`
      const watch = request({ port: server.port, path, agent: false, ...bearer(name) }).end()
      const [incoming] = await once(watch, 'response')
      return incoming
    }
    const [cut, kept] = await Promise.all([open(revoked), open('bob')])
    revocations.revoke(revoked)
    await expect(textOf(cut)).rejects.toThrow('aborted')
    await server.ask('/version', bearer('bob'))
    expect([...revocations.open].map((entry) => entry.username)).toEqual(['bob'])
    expect(server.pipeline.longRunning).toBe(1)
    kept.destroy()
  })

  test('draining ends watches in good order and waits for the rest', async () => {
    const server = await start({
      resources: async (_request, response, signal) => {
        response.write('event')
        await once(signal, 'abort')
        response.end('bye')
      },
    })
    const path = `${pods}?watch=1`
    const watch = request({ port: server.port, path, agent: false, ...bearer('ann') }).end()
    const [incoming] = await once(watch, 'response')
    const [text] = await Promise.all([textOf(incoming), server.pipeline.drain()])
    expect(text).toBe('eventbye')
    expect((await server.ask('/version', bearer('ann'))).headers['connection']).toBe('close')
  })
})

describe('what goes wrong late harms nobody else', () => {
  test.each(versions)('a stream that is gone before its refusal, over %s', async (version) => {
    const server = await start(
      {
        resources: (_request, response) => {
          response.destroy()
          throw new Error('and now this')
        },
      },
      version,
    )
    await expect(server.ask(pods, bearer('ann'))).rejects.toThrow(/hang up|closed|premature/i)
    expect((await server.ask('/version', bearer('ann'))).code).toBe(200)
  })

  test('an audit that throws', async () => {
    const said: string[] = []
    const server = await start({
      log: { ...silentLogger, error: (_fields, message) => said.push(message) },
      metrics: {
        complete: () => {
          throw new Error('a bug')
        },
      },
    })
    expect((await server.ask(pods, bearer('ann'))).code).toBe(200)
    await server.pipeline.drain()
    expect(said).toEqual(['cannot record the request'])
  })

  test.each(versions)(
    'an answer that breaks off is cut, not completed, over %s',
    async (version) => {
      const server = await start(
        {
          resources: async (_request, response) => {
            response.write('half')
            await new Promise((resolve) => setImmediate(resolve))
            throw new Error('a bug')
          },
        },
        version,
      )
      await expect(server.ask(pods, bearer('ann'))).rejects.toThrow(/aborted|INTERNAL_ERROR/)
    },
  )

  test('a watch that has not begun when the server drains is a 503', async () => {
    const server = await start({
      resources: async (_request, _response, signal) => {
        void server.pipeline.drain()
        await Promise.resolve()
        signal.throwIfAborted()
      },
    })
    const answer = await server.ask(`${pods}?watch=1`, bearer('ann'))
    expect([answer.code, answer.headers['retry-after']]).toEqual([503, '1'])
  })

  test('a client that goes is no error', async () => {
    const said: string[] = []
    const say = (_fields: object, message: string) => said.push(message)
    const server = await start({
      log: { ...silentLogger, error: say, warn: say },
      resources: async (_request, _response, signal) => {
        client.destroy()
        await once(signal, 'abort')
        signal.throwIfAborted()
      },
    })
    const client = request({ port: server.port, path: pods, agent: false, ...bearer('ann') }).end()
    client.on('error', () => {})
    await new Promise((resolve) => client.on('close', resolve))
    await server.pipeline.drain()
    expect(said).toEqual([])
  })
})

describe('requests to leave HTTP pass the same checks', () => {
  const proxied = '/api/v1/namespaces/a/services/s/proxy/x'
  const shake = (path: string, who: string) =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `${who ? `Authorization: Bearer ${who}\r\n` : ''}\r\n`
  const echo: NonNullable<DepsChanges['upgrade']> = (_request, client) => {
    const socket = client.claim()
    socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
    socket.pipe(socket)
  }

  async function dial(server: Running, text: string) {
    const socket = connect(server.port, '127.0.0.1')
    socket.write(text)
    return socket
  }

  test('an allowed one gets the socket', async () => {
    const audit = recordingAudit()
    const server = await start({ upgrade: echo, audit })
    const socket = await dial(server, shake(proxied, 'ann'))
    const [hello] = await once(socket, 'data')
    expect(String(hello)).toContain('101 Switching Protocols')
    socket.end('ping')
    expect(await textOf(socket)).toBe('ping')
    await server.pipeline.drain()
    expect(audit.stages.at(-1)).toMatchObject({ stage: 'complete', code: 101 })
  })

  test.each<[string, number, string, string, DepsChanges]>([
    ['without identity', 401, proxied, '', { upgrade: echo }],
    ['without right', 403, proxied, 'ann', { upgrade: echo, authorizer: denying }],
    ['to a path of two meanings', 400, `${proxied}/../y`, 'ann', { upgrade: echo }],
    ['on a path that only speaks HTTP', 400, pods, 'ann', { upgrade: echo }],
    ['where nobody takes them', 400, proxied, 'ann', {}],
  ])('%s they get %i, and the connection is closed', async (_name, code, path, who, parts) => {
    const server = await start(parts)
    const socket = await dial(server, shake(path, who))
    const text = await textOf(socket)
    expect(text).toContain(`HTTP/1.1 ${code} `)
    expect(text).toContain(`"code":${code}`)
  })

  test('revocation cuts an upgraded connection', async () => {
    const revocations = fakeRevocations()
    const server = await start({ upgrade: echo, onRevoked: revocations.onRevoked })
    const socket = await dial(server, shake(proxied, 'ann'))
    await once(socket, 'data')
    revocations.revoke('ann')
    await once(socket, 'close')
    expect(socket.destroyed).toBe(true)
  })
})

function withResolvers() {
  let resolve = (_value: unknown): void => {}
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}
