import { chmod, chown, copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'
import {
  createMachine,
  WorkloadRunner,
  whyNoMountNamespace,
} from '../../support/running-workload.ts'
import { type SallyportProcess, startSallyport } from '../../support/sallyport-process.ts'

const reason = whyNoMountNamespace()
if (reason) console.warn(`skipped: ${reason}`)
const program = pathOrReason(findPeer('workload'))
const kubectl = pathOrReason(findProgram('kubectl'))
const clientNode = fileURLToPath(new URL('client-node.mjs', import.meta.url))
const nobody = 65_534

/** Who runs the workload: root has a mount namespace for the asking, others need a user namespace for it. */
const users: [string, number | undefined][] = [
  ['whoever runs the tests', undefined],
  ...(process.getuid?.() === 0 ? [['an ordinary user', nobody] satisfies [string, number]] : []),
]

let server: SallyportProcess
let scratch: string
const runners = new Map<number | undefined, WorkloadRunner>()

beforeAll(async () => {
  server = await startSallyport()
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-in-cluster-'))
  await chmod(scratch, 0o755)
  // What is built for root may be where nobody else can look.
  if (program !== undefined) await copyFile(program, join(scratch, 'workload'))
  for (const [, uid] of users) {
    const file = await createMachine({ server, directory: scratch }, `machine-${uid ?? 'own'}`)
    if (uid !== undefined) await chown(file, uid, uid)
    runners.set(uid, new WorkloadRunner(file))
  }
})
afterAll(async () => {
  for (const runner of runners.values()) await runner.close()
  await server?.stop()
  await rm(scratch, { recursive: true, force: true })
})

async function runAs(uid: number | undefined, words: readonly string[]): Promise<string> {
  const runner = runners.get(uid)
  if (!runner) throw new Error('there is no such machine')
  const { code, stdout, stderr } = await runner.run(words, uid === undefined ? {} : { uid })
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

const account = 'system:serviceaccount:default:default'

describe.skipIf(reason !== '').each(users)('in a workload of %s', (_who, uid) => {
  test.skipIf(program === undefined)(
    'client-go finds its cluster, and go-oidc believes its token [ISS-W4, ISS-R31]',
    async () => {
      const path = join(scratch, 'workload')
      const said = JSON.parse(await runAs(uid, ['--name', `go-${uid ?? 'own'}`, '--', path]))
      expect(said).toMatchObject({
        host: server.server,
        user: { username: account },
        issuer: server.server,
        subject: account,
        audience: [server.server],
        claims: {
          namespace: 'default',
          pod: { name: `go-${uid ?? 'own'}` },
          serviceaccount: { name: 'default' },
        },
        refused: expect.stringContaining('expected audience'),
      })
    },
  )

  test('@kubernetes/client-node finds its cluster [ISS-W4]', async () => {
    const said = JSON.parse(await runAs(uid, ['--', process.execPath, clientNode]))
    expect(said).toEqual({ server: server.server, namespace: 'default', username: account })
  })

  test.skipIf(kubectl === undefined)('kubectl is its service account [ISS-W4]', async () => {
    const words = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']
    expect(await runAs(uid, ['--', 'kubectl', ...words])).toBe(account)
  })
})

describe.skipIf(reason !== '')('without the fixed path', () => {
  test.skipIf(program === undefined)(
    'client-go says plainly that it is in no cluster [ISS-W5]',
    async () => {
      const path = join(scratch, 'workload')
      const outcome = await runners.get(undefined)?.run(['--no-in-cluster', '--', path])
      expect(outcome?.code).toBe(1)
      expect(outcome?.stderr).toContain('unable to load in-cluster configuration')
    },
  )

  test.skipIf(kubectl === undefined)('kubectl works all the same [ISS-W5]', async () => {
    const words = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']
    expect(await runAs(undefined, ['--no-in-cluster', '--', 'kubectl', ...words])).toBe(account)
  })
})
