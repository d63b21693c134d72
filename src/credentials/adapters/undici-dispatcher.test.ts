import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ConnectionsOptions } from '../transport/index.ts'
import {
  FakeSource,
  type LabServer,
  type Seen,
  TransportLab,
  textOf,
  tokenCredential,
  whoAmI,
} from '../transport/transport-lab.suite.ts'
import { type UndiciModule, undiciDispatcher } from './undici-dispatcher.ts'

let lab: TransportLab
/** The undici that this Node has built in: 6 in Node 20 and 22, 7 in Node 24. */
let undici: UndiciModule
beforeAll(async () => {
  lab = await TransportLab.open()
  await fetch('data:,') // loads it
  const known: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
  undici = { Agent: (known as object).constructor as UndiciModule['Agent'] }
})
afterEach(() => lab.clear())

function fetchBy(server: LabServer, options: Partial<ConnectionsOptions>) {
  const dispatcher = undiciDispatcher(undici, lab.connect(server, options))
  lab.own({ destroy: () => void dispatcher.destroy() })
  return (url: string, init: RequestInit = {}) =>
    fetch(url, { ...init, dispatcher } as RequestInit & { dispatcher: never })
}

describe('a dispatcher of undici [CRED-T4]', () => {
  test('keeps connections, and changes them with the certificate [CRED-R21]', async () => {
    const server = await lab.serve(whoAmI)
    const credentials = new FakeSource({ clientCertificate: await lab.certificate('user1') })
    const get = fetchBy(server, { credentials })
    const who = async () => ((await (await get(server.url)).json()) as Seen).commonName
    const names = new Set<string | undefined>()
    for (let i = 0; i < 10; i++) names.add(await who())
    expect([...names]).toEqual(['user1'])
    // Its pool opens a second one, since it calls a connection busy for one turn after an answer.
    expect(server.connections()).toBeLessThanOrEqual(2)
    credentials.rotate({ clientCertificate: await lab.certificate('user2') })
    expect([await who(), await who()]).toEqual(['user2', 'user2'])
  })

  const echoFor = (token: string) =>
    lab.serve(async (request, response) => {
      const text = await textOf(request)
      response.statusCode = request.headers.authorization === `Bearer ${token}` ? 200 : 401
      response.setHeader('www-authenticate', 'Bearer')
      response.end(`${request.method} ${text}`)
    })

  test('replays after a 401 [CRED-C6]', async () => {
    const server = await echoFor('t2')
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const get = fetchBy(server, { credentials })
    const response = await get(server.url)
    expect([response.status, await response.text()]).toEqual([200, 'GET '])
    expect(credentials.refusals).toMatchObject([
      { status: 401, headers: { 'www-authenticate': ['Bearer'] } },
    ])
  })

  test('hands on a 401 that no new credential cures, with its body [CRED-C6]', async () => {
    const server = await echoFor('t9')
    for (const next of [[], [tokenCredential('t2')]]) {
      const credentials = new FakeSource(tokenCredential('t1'), ...next)
      const response = await fetchBy(server, { credentials })(server.url)
      expect([response.status, await response.text()]).toEqual([401, 'GET '])
    }
  })

  test("leaves a caller's Authorization alone, and goes nowhere else with ours [CRED-S10]", async () => {
    const server = await lab.serve(whoAmI)
    const credentials = new FakeSource(tokenCredential('t1'))
    const get = fetchBy(server, { credentials })
    const own = await get(server.url, { headers: { authorization: 'Bearer own' } })
    expect(((await own.json()) as Seen).authorization).toBe('Bearer own')
    const attempt = get('https://example.com/')
    await expect(attempt).rejects.toMatchObject({
      cause: { message: expect.stringContaining('not to https://example.com') as string },
    })
    expect(credentials.asked).toBe(0)
  })

  test.each([
    ['a newer one', { Agent: class {}, Dispatcher1Wrapper: class {} }],
    ['something else', {}],
  ])('is refused for %s', (_, other) => {
    const attempt = () => undiciDispatcher(other as UndiciModule, undefined as never)
    expect(attempt).toThrow(/undici 6 and 7|version 6 or 7/)
  })
})
