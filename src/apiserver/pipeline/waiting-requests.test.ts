import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { type Authentication, forbidden, systemClock, unauthorized } from '../../core/index.ts'
import { Fairness } from '../fairness/fairness.ts'
import { defaultFairnessLimits } from '../limits.ts'
import { send } from '../routes/route.ts'
import { depsWith, identity, type Running, serve } from './pipeline.suite.ts'

let running: Running | undefined
afterEach(async () => {
  await running?.stop()
  running = undefined
})

const path = '/api/v1/namespaces/a/pods'

/** What can change while a request waits, and who is concerned by it. */
interface World {
  revoked: string
  accepted: boolean
  mayImpersonate: boolean
}

const changes: readonly [name: string, change: Partial<World>, acting: boolean, code: number][] = [
  ['nothing', {}, false, 200],
  ['nothing, when impersonating', {}, true, 200],
  ['the revocation of another user', { revoked: 'bob' }, false, 200],
  ['the revocation of its user', { revoked: 'ann' }, false, 401],
  ['the revocation of its user, when impersonating', { revoked: 'ann' }, true, 401],
  ['the end of its credential', { accepted: false }, false, 401],
  ['the end of its credential, when impersonating', { accepted: false }, true, 401],
  ['the loss of the right to impersonate', { mayImpersonate: false }, true, 403],
]

/** A server with one permit, whose handler counts and waits as told. */
async function attacked() {
  const world: World = { revoked: '', accepted: true, mayImpersonate: true }
  let elapsedMs = 0
  const handled: string[] = []
  const identified: string[] = []
  const stopped: boolean[] = []
  let hold = Promise.resolve()
  let recheck = (): void => {}
  const fairness = new Fairness({ ...defaultFairnessLimits, mutating: 1 })
  const nameOf = ({ user, impersonator = user }: Authentication): string => impersonator.username
  const parts = depsWith({
    clock: { ...systemClock, now: () => 0, monotonic: () => elapsedMs },
    fairness,
    authenticator: {
      name: 'test',
      authenticate({ headers }) {
        if (!world.accepted) throw unauthorized('the token is deleted')
        return identity(String(headers.authorization))
      },
    },
    connections: { authenticated: (_request, found) => void identified.push(nameOf(found)) },
    checkRevocation: (found) => {
      if (nameOf(found) === world.revoked) throw unauthorized('revoked')
    },
    onMoreRevoked: (check) => (recheck = check),
    impersonate: ({ headers }, real) => {
      const username = headers['impersonate-user']
      if (typeof username !== 'string') return real
      if (!world.mayImpersonate) throw forbidden({ group: '', resource: 'users' }, username, '')
      return { ...real, user: { username, groups: [] }, impersonator: real.user }
    },
    resources: async (routed, response, signal) => {
      handled.push(nameOf(routed.authentication))
      await hold
      stopped.push(signal.aborted)
      if (!signal.aborted) send(response, 'text/plain', 'done')
    },
  })
  running = await serve('HTTP/1.1', parts)
  const { port } = running
  const post = (user: string, isActing: boolean): ClientRequest => {
    const headers = {
      authorization: user,
      'content-length': '4',
      ...(isActing && { 'impersonate-user': 'victim' }),
    }
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent: false })
    sent.flushHeaders()
    return sent
  }
  return {
    post,
    fairness,
    handled,
    identified,
    stopped,
    change: (what: Partial<World>): void => {
      elapsedMs += 10_000
      Object.assign(world, what)
      if (what.revoked !== undefined) recheck()
    },
    holdHandlers: (until: Promise<void>): void => {
      hold = until
    },
  }
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
}

async function codeOf(sent: ClientRequest): Promise<number | undefined> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode
}

describe('a request that waits is stopped by what happens meanwhile [SEC-R205]', () => {
  test.each(changes)('waiting for its body: %s', async (_name, change, isActing, code) => {
    const server = await attacked()
    const sent = server.post('ann', isActing)
    sent.write('{')
    await until(() => server.identified.length > 0)
    server.change(change)
    sent.end('  }')
    expect([await codeOf(sent), server.handled.length]).toEqual([code, code === 200 ? 1 : 0])
  })

  test.each(changes)('waiting for a permit: %s', async (_name, change, isActing, code) => {
    const server = await attacked()
    let finish = (): void => {}
    server.holdHandlers(new Promise((resolve) => (finish = resolve)))
    const first = server.post('holder', false).end('{  }')
    await until(() => server.handled.length === 1)
    const sent = server.post('ann', isActing).end('{  }')
    await until(() => server.fairness.queued('mutating') === 1)
    server.change(change)
    finish()
    const codes = await Promise.all([codeOf(first), codeOf(sent)])
    expect([codes, server.handled]).toEqual([
      [200, code],
      code === 200 ? ['holder', 'ann'] : ['holder'],
    ])
  })

  const revocations = changes.filter(([, change]) => change.revoked !== undefined)
  test.each(revocations)(
    'waiting in its handler: %s [SEC-R2452]',
    async (_name, change, isActing, code) => {
      const server = await attacked()
      let finish = (): void => {}
      server.holdHandlers(new Promise((resolve) => (finish = resolve)))
      const sent = server.post('ann', isActing).end('{  }')
      await until(() => server.handled.length === 1)
      server.change(change)
      if (code === 200) finish()
      expect(await codeOf(sent)).toBe(code)
      finish()
      await until(() => server.stopped.length === 1)
      expect(server.stopped).toEqual([code !== 200])
    },
  )
})
