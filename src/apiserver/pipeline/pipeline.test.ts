import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { badRequest, type Scope, wellKnown } from '../../core/index.ts'
import { CpuAccounts } from '../fairness/cpu-accounts.ts'
import { Fairness } from '../fairness/fairness.ts'
import { defaultCpuLimits, defaultFairnessLimits } from '../limits.ts'
import {
  type DepsChanges,
  depsWith,
  identity,
  type Running,
  recordingAudit,
  serve,
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

/** Users who have used more than their share, on an event loop that is saturated. */
function indebted(): CpuAccounts {
  const cpu = new CpuAccounts(defaultCpuLimits, { now: () => 0, load: () => 1 })
  for (const user of ['ann', 'root']) cpu.charge(user, defaultCpuLimits.maxDebtMs)
  return cpu
}

test('CPU time is charged to whoever acts as others; administrators and health are exempt [SEC-R505]', async () => {
  const groups = [wellKnown.masters]
  const server = await start({
    cpu: indebted(),
    impersonate: ({ headers }, found) => {
      if (found.user.username === 'root')
        return identity('root', { user: { username: 'root', groups } })
      const user = { username: String(headers['x-as']), groups: [] }
      return headers['x-as'] ? { ...found, user, impersonator: found.user } : found
    },
  })
  const code = async (path: string, who: string, headers = {}) =>
    (await server.ask(path, { headers: { ...bearer(who).headers, ...headers } })).code
  expect(await code(pods, 'ann', { 'x-as': 'bob' })).toBe(429)
  expect(await code(pods, 'bob')).toBe(200)
  expect(await code(pods, 'root')).toBe(200)
  expect(await code('/readyz', 'ann')).toBe(200)
})

describe.each(versions)('over %s', (version) => {
  test('a request that passes every check is answered by its route', async () => {
    const server = await start({}, version)
    const resource = await server.ask(pods, bearer('ann'))
    const path = await server.ask('/version', bearer('ann'))
    expect([resource.code, resource.text]).toEqual([200, 'hello'])
    expect([path.code, path.text]).toEqual([200, 'path'])
    expect(resource.headers).toMatchObject({ 'cache-control': 'no-cache, private' })
    expect(resource.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/)
  })

  test.each<[string, number, DepsChanges, string, string]>([
    ['a path of two meanings', 400, {}, `${pods}/a%2fb`, 'ann'],
    ['a URL that is too long', 414, {}, `/${'a'.repeat(20_000)}`, 'ann'],
    ['no credential', 401, {}, pods, ''],
    ['a wrong credential', 401, {}, pods, 'wrong'],
    ['no right', 403, { authorizer: denying }, pods, 'ann'],
    ['too many requests', 429, { fairness: full() }, pods, 'ann'],
    ['more than a share of CPU time', 429, { cpu: indebted() }, pods, 'ann'],
    ['an unknown exception', 500, { resources: failing }, pods, 'ann'],
    ['an exception that comes late', 500, { resources: failingLater }, pods, 'ann'],
  ])('%s is a Status with code %i', async (_name, code, parts, path, who) => {
    const server = await start(parts, version)
    const answer = await server.ask(path, who ? bearer(who) : {})
    expect(answer.code).toBe(code)
    expect(answer.status).toMatchObject({ kind: 'Status', apiVersion: 'v1', code })
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-cache, private',
    })
    expect(answer.headers['audit-id']).toBeTypeOf('string')
    expect(answer.text).not.toContain('the reason is private')
  })

  test('a request that takes too long is a 504, and its work is stopped', async () => {
    const signals: AbortSignal[] = []
    const server = await start(
      {
        requestTimeoutMs: 20,
        resources: (_request, _response, signal) => {
          signals.push(signal)
          return new Promise<void>(() => {})
        },
      },
      version,
    )
    const answer = await server.ask(pods, bearer('ann'))
    expect([answer.code, answer.status['reason']]).toEqual([504, 'Timeout'])
    expect(signals[0]?.aborted).toBe(true)
  })

  test('a handler that goes on after the deadline changes nothing', async () => {
    let done: Promise<void> | undefined
    const server = await start(
      {
        requestTimeoutMs: 20,
        resources: (_request, response, signal) => {
          done = once(signal, 'abort').then(() => {
            response.end('too late')
            response.writeHead(200)
          })
          return done
        },
      },
      version,
    )
    const answer = await server.ask(pods, bearer('ann'))
    await done?.catch(() => {})
    expect([answer.code, answer.status['reason']]).toEqual([504, 'Timeout'])
    expect((await server.ask('/version', bearer('ann'))).code).toBe(200)
  })
})

const denying: NonNullable<DepsChanges['authorizer']> = {
  authorize: () => Promise.resolve({ allowed: false, reason: 'not today' }),
  rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
}

const full = () => new Fairness({ ...defaultFairnessLimits, readOnly: 0, queuedPerUser: 0 })

const failing = () => {
  throw new Error('the reason is private')
}

const rejected = (why: string): never => {
  throw badRequest(why)
}

const failingLater = () => Promise.reject(new Error('the reason is private'))

describe('the order of checks is the order of the table', () => {
  const refusals: [string, DepsChanges, number][] = [
    ['authenticate', { authenticator: { name: 'none', authenticate: () => undefined } }, 401],
    ['revocation', { checkRevocation: () => rejected('revoked') }, 400],
    ['impersonate', { impersonate: () => Promise.reject(badRequest('may not')) }, 400],
    ['fairness', { fairness: full() }, 429],
    ['authorize', { authorizer: denying }, 403],
  ]

  test.each(refusals)('nothing is routed that %s refuses', async (_name, parts, code) => {
    let routed = 0
    const count = () => {
      routed++
    }
    const server = await start({ ...parts, resources: count, paths: count })
    expect((await server.ask(pods, bearer('ann'))).code).toBe(code)
    expect((await server.ask('/version', bearer('ann'))).code).toBe(code)
    expect(routed).toBe(0)
  })

  test('of several refusals the earliest counts', async () => {
    const codes: number[] = []
    for (let from = 0; from < refusals.length; from++) {
      const parts = Object.assign({}, ...refusals.slice(from).map(([, changes]) => changes))
      const server = await start(parts)
      codes.push((await server.ask(pods, bearer('ann'))).code)
    }
    expect(codes).toEqual(refusals.map(([, , code]) => code))
  })

  test('an upstream API server authorizes what it owns, and the scope of a credential is checked here', async () => {
    const scope: Scope = { name: 'health', permits: ({ path }) => path === '/healthz' }
    const upstream: DepsChanges = { owner: () => 'upstream', authorizer: denying }
    const server = await start(upstream)
    expect((await server.ask(pods, bearer('ann'))).code).toBe(200)
    const scoped = await start({
      ...upstream,
      authenticator: { name: 'scoped', authenticate: () => identity('ann', { scope }) },
    })
    expect((await scoped.ask(pods, bearer('ann'))).code).toBe(403)
    expect((await scoped.ask('/healthz', bearer('ann'))).code).toBe(200)
  })

  test('[SEC-R201] what method and URL alone rule out is refused before authorization', async () => {
    const allowed = await start()
    const denied = await start({ authorizer: denying })
    for (const [path, method, code] of [
      [`${pods}/x/log/more`, 'GET', 404],
      [pods, 'OPTIONS', 405],
      [pods, 'HEAD', 405],
      ['/api/v1/watch/pods', 'POST', 405],
    ] as const) {
      const options = { method, ...bearer('ann') }
      expect((await allowed.ask(path, options)).code).toBe(code)
      expect((await denied.ask(path, options)).code).toBe(code)
    }
  })
})

describe('who acts', () => {
  test('success adds system:authenticated, once [GND-R75]', async () => {
    const groups: (readonly string[])[] = []
    const member = identity('ann', {
      user: { username: 'ann', groups: ['dev', wellKnown.authenticated] },
    })
    for (const found of [identity('ann'), member]) {
      const server = await start({
        authenticator: { name: 'fixed', authenticate: () => found },
        resources: ({ authentication }, response) => {
          groups.push(authentication.user.groups)
          response.end()
        },
      })
      await server.ask(pods)
    }
    expect(groups).toEqual([['system:authenticated'], ['dev', 'system:authenticated']])
  })

  test('an anonymous user does not become authenticated', async () => {
    let groups: readonly string[] = []
    const server = await start({
      authenticator: {
        name: 'anonymous',
        authenticate: () => ({
          user: { username: wellKnown.anonymous, groups: [wellKnown.unauthenticated] },
          method: 'anonymous',
        }),
      },
      resources: ({ authentication }, response) => {
        groups = authentication.user.groups
        response.end()
      },
    })
    await server.ask(pods)
    expect(groups).toEqual([wellKnown.unauthenticated])
  })

  const podsOnly: Scope = {
    name: 'pods',
    permits: ({ resource }) => resource?.resource === 'pods',
  }

  test('a scope is checked before the rights of the user are asked for [GND-R75]', async () => {
    let asked = 0
    const server = await start({
      authenticator: { name: 'scoped', authenticate: () => identity('ann', { scope: podsOnly }) },
      authorizer: {
        ...denying,
        authorize: () => {
          asked++
          return { allowed: true, reason: '' }
        },
      },
    })
    expect((await server.ask(pods)).code).toBe(200)
    const refused = await server.ask('/api/v1/secrets')
    expect(refused.code).toBe(403)
    expect(refused.status['message']).toContain('may only be used for pods')
    expect(asked).toBe(1)
  })

  test('acting as somebody else does not shed the scope of the own credential', async () => {
    const server = await start({
      authenticator: { name: 'scoped', authenticate: () => identity('ann', { scope: podsOnly }) },
      impersonate: () => identity('root'),
    })
    expect((await server.ask(pods)).code).toBe(200)
    expect((await server.ask('/api/v1/secrets')).code).toBe(403)
  })
})

describe('every request is told to the audit, refused ones too [GND-R82]', () => {
  test.each([
    ['an answered one', pods, bearer('ann'), ['received', 'complete'], 200],
    ['a watch', `${pods}?watch=1`, bearer('ann'), ['received', 'started', 'complete'], 200],
    ['one that nobody could read', '//', {}, ['complete'], 400],
    ['one without identity', pods, {}, ['received', 'complete'], 401],
  ])('%s', async (_name, path, options, stages, code) => {
    const audit = recordingAudit()
    const server = await start({ audit })
    await server.ask(path, options)
    await server.pipeline.drain()
    expect(audit.stages.map(({ stage }) => stage)).toEqual(stages)
    expect(audit.stages.at(-1)?.code).toBe(code)
  })

  test.each([
    ['kept if it is plain', 'my-id', /^my-id$/],
    ['replaced if it is not', 'a b', /^[0-9a-f-]{36}$/],
    ['replaced if it is long', 'x'.repeat(65), /^[0-9a-f-]{36}$/],
  ])("the client's audit id is %s", async (_name, id, expected) => {
    const server = await start()
    const answer = await server.ask(pods, { headers: { 'audit-id': id } })
    expect(answer.headers['audit-id']).toMatch(expected)
  })
})
