import { afterEach, beforeAll, expect, test } from 'vitest'
import { buildOnce } from '../build-once.ts'
import { openCluster } from '../support/cluster-client.ts'
import { eventually } from '../support/eventually.ts'
import {
  runSallyport,
  type SallyportProcess,
  startSallyport,
} from '../support/sallyport-process.ts'

const question = '/api/v1/proxy/namespaces/kube-system/services/whoami/api/whoami?add-auth=true'

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
    const { client } = await openCluster(server.kubeconfig)
    const user = await eventually(
      'whoami answers',
      async () => {
        const asked = { method: 'GET', path: question, headers: {} }
        const { body } = await client.request(asked, AbortSignal.timeout(5_000))
        return (JSON.parse(body.toString()) as { user: string }).user
      },
      90_000,
    )
    expect(user).toBe('kubernetes-admin')
  },
  120_000,
)

test('an add-on that is not in the package is wrong usage, and the others are named [ADDON-E4]', async () => {
  const { code, stderr } = await runSallyport(['up', '--with', 'dashboard'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('--with must be one of whoami')])
})
