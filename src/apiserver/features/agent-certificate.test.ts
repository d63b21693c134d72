import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { openPki, type Pki } from '../../pki/index.ts'
import { agentCertificateFile, ensureAgentCertificate } from './tunnel.ts'

const dayMs = 24 * 60 * 60_000
const after = (days: number) => ({ ...systemClock, now: () => systemClock.now() + days * dayMs })

let directory: string
let pki: Pki
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-agent-certificate-'))
  pki = await openPki(directory, { clock: systemClock, log: silentLogger })
})
afterAll(() => rm(directory, { recursive: true, force: true }))

test('it names the node, the organization of nodes and the group for the default route', async () => {
  expect(await ensureAgentCertificate(pki, 'edge', systemClock)).toBe(true)
  const { subject } = new X509Certificate(await readFile(agentCertificateFile(pki)))
  expect(subject.split('\n').toSorted()).toEqual([
    'CN=system:node:edge',
    'O=system:nodes',
    'O=system:sallyport:default-route-agents',
  ])
})

describe('a certificate', () => {
  test.each([
    ['with most of its life left is kept', 'edge', 200, false],
    ['past two thirds of its life is replaced', 'edge', 250, true],
    ['of another node is replaced', 'other', 0, true],
  ])('%s', async (_what, nodeName, days, isReplaced) => {
    await rm(agentCertificateFile(pki), { force: true })
    await ensureAgentCertificate(pki, 'edge', systemClock)
    expect(await ensureAgentCertificate(pki, nodeName, after(days))).toBe(isReplaced)
  })

  test('without the key that fits is replaced', async () => {
    const path = agentCertificateFile(pki)
    await ensureAgentCertificate(pki, 'edge', systemClock)
    const [certificate = ''] = /-----BEGIN CERTIFICATE[^]*/.exec(await readFile(path, 'utf8')) ?? []
    await rm(path)
    await ensureAgentCertificate(pki, 'edge', systemClock)
    const [key = ''] = /^[^]*END PRIVATE KEY-----\n/.exec(await readFile(path, 'utf8')) ?? []
    await writeFile(path, key + certificate)
    expect(await ensureAgentCertificate(pki, 'edge', systemClock)).toBe(true)
  })
})
