import { on } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { buildOnce } from '../build-once.ts'
import { openCluster } from '../support/cluster-client.ts'
import {
  runSallyport,
  type SallyportProcess,
  startSallyport,
} from '../support/sallyport-process.ts'

let server: SallyportProcess | undefined
beforeAll(async () => void (await buildOnce()), 120_000)
afterEach(async () => {
  await server?.stop()
  server = undefined
})

test.each([
  ['its serving key', 'serving'],
  ['a key of its own', 'dedicated'],
])(
  'whoami runs beside a server that signs with %s, and knows its user [ADDON-E4]',
  async (_what, key) => {
    server = await startSallyport({ args: ['--with', 'whoami', '--addon-token-key', key] })
    const said = createInterface({ input: server.process.stdout ?? Readable.from([]) })
    const path = '/api/v1/proxy/namespaces/kube-system/services/whoami/'
    for await (const [line] of on(said, 'line', { signal: AbortSignal.timeout(90_000) })) {
      // On a busy machine it is told first that it takes long.
      const { problem, ...news } = JSON.parse(String(line)) as { problem?: string }
      if (problem !== undefined) continue
      expect(news).toEqual({ addon: 'whoami', path })
      break
    }
    // Once its address is told, it answers.
    const { client } = await openCluster(server.kubeconfig)
    const asked = { method: 'GET', path: `${path}api/whoami?add-auth=true`, headers: {} }
    const { body } = await client.request(asked, AbortSignal.timeout(20_000))
    const { user } = JSON.parse(body.toString()) as { user: string }
    expect(user).toBe('kubernetes-admin')
  },
  120_000,
)

test('an add-on that is not in the package is wrong usage, and the others are named [ADDON-E4]', async () => {
  const { code, stderr } = await runSallyport(['up', '--with', 'dashboard'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('--with must be one of whoami')])
})
