import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Secret } from '../../core/index.ts'
import { labCertificate, named } from '../../pki/certificate-lab.suite.ts'
import { privateKeyPem } from '../../pki/index.ts'
import type { CredentialSource } from '../credential.ts'
import { EventLog, FakeClock, refusal401 } from './fake-plugin.suite.ts'
import { certificateFileSource, tokenFileSource } from './file-source.ts'
import { fileTrust, trustSourceFor } from './trust-source.ts'

let directory: string
let clock: FakeClock
let observer: EventLog
const at = (name: string) => join(directory, name)
const put = (name: string, text: string) => writeFile(at(name), text)

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-source-'))
  clock = new FakeClock()
  observer = new EventLog()
})
afterEach(() => rm(directory, { recursive: true }))

const tokenOf = async (source: CredentialSource) => (await source.current()).token?.reveal()

describe('a token file [CRED-K7]', () => {
  const open = () => tokenFileSource(at('token'), { clock, observer })

  test('is read when it is needed, without the space round it', async () => {
    const source = open()
    await put('token', '\n t0ken\r\n')
    expect(await tokenOf(source)).toBe('t0ken')
  })

  test('is read again after 50 s, and not before', async () => {
    await put('token', 'a')
    const source = open()
    await source.current()
    await put('token', 'b')
    clock.advance(49_999)
    expect(await tokenOf(source)).toBe('a')
    clock.advance(1)
    expect(await tokenOf(source)).toBe('b')
  })

  test.each([
    ['is empty', () => put('token', ' \n'), 'has no token in it'],
    ['is missing', async () => {}, 'ENOENT'],
  ])('that %s is an error', async (_name, prepare, message) => {
    await prepare()
    await expect(open().current()).rejects.toMatchObject({
      code: 'FILE',
      message: expect.stringContaining(message),
    })
  })

  test.each([
    ['empty', () => put('token', '')],
    ['missing', () => rm(at('token'))],
  ])('that is %s later leaves the last good token, and that is told', async (_name, spoil) => {
    await put('token', 'good')
    const source = open()
    await source.current()
    await spoil()
    clock.advance(60_000)
    expect(await tokenOf(source)).toBe('good')
    expect(observer.types()).toEqual(['refresh-failed'])
  })

  test.each([
    ['is empty', () => put('token', ' \n')],
    ['is missing', async () => {}],
  ])(
    'that %s leaves the token beside it in use, until there is one in it',
    async (_name, prepare) => {
      await prepare()
      const source = tokenFileSource(at('token'), { clock, observer }, new Secret('beside'))
      expect(await tokenOf(source)).toBe('beside')
      await put('token', 'in the file')
      clock.advance(50_000)
      expect(await tokenOf(source)).toBe('in the file')
    },
  )

  test('goes before the token beside it', async () => {
    await put('token', 'in the file')
    const source = tokenFileSource(at('token'), { clock, observer }, new Secret('beside'))
    expect(await tokenOf(source)).toBe('in the file')
  })

  test('is read at once when its token is refused, but not in a storm', async () => {
    await put('token', 'a')
    const source = open()
    const used = await source.current()
    expect(await source.renew(used, refusal401)).toBeUndefined()
    await put('token', 'b')
    expect(await source.renew(used, refusal401)).toBeUndefined()
    clock.advance(1_000)
    expect((await source.renew(used, refusal401))?.token?.reveal()).toBe('b')
  })

  test('releases a caller who gives up', async () => {
    await put('token', 'a')
    await expect(open().current(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
  })
})

interface Pair {
  readonly certPem: string
  readonly keyPem: Secret
}

async function pair(name: string): Promise<Pair> {
  const { certificate, key } = await labCertificate({ subject: named(name) })
  return { certPem: certificate.toString(), keyPem: privateKeyPem(key) }
}

describe('certificate files [CRED-K8]', () => {
  const open = () =>
    certificateFileSource({ cert: { path: at('crt') }, key: { path: at('key') } }, { clock })
  const write = async ({ certPem, keyPem }: Pair) => {
    await put('crt', certPem)
    await put('key', keyPem.reveal())
  }
  const certificateOf = async (source: CredentialSource) =>
    (await source.current()).clientCertificate?.certPem

  test('that are replaced replace the credential, and who listens is told', async () => {
    const [first, second] = [await pair('a'), await pair('b')]
    await write(first)
    const source = open()
    const seen: (string | undefined)[] = []
    source.onRotate((next) => seen.push(next.clientCertificate?.certPem))
    expect(await certificateOf(source)).toBe(first.certPem)
    await write(second)
    clock.advance(10_000)
    expect(await certificateOf(source)).toBe(second.certPem)
    expect(seen).toEqual([second.certPem])
    source.dispose()
  })

  test('of which only one is replaced yet leave the pair before', async () => {
    const [first, second] = [await pair('a'), await pair('b')]
    await write(first)
    const source = open()
    await source.current()
    await put('crt', second.certPem)
    clock.advance(10_000)
    expect(await certificateOf(source)).toBe(first.certPem)
    await put('key', second.keyPem.reveal())
    clock.advance(10_000)
    expect(await certificateOf(source)).toBe(second.certPem)
  })

  test('that did not change are the same credential', async () => {
    await write(await pair('a'))
    const source = open()
    const before = await source.current()
    clock.advance(10_000)
    expect(await source.current()).toBe(before)
  })

  test('that do not belong together are refused', async () => {
    await put('crt', (await pair('a')).certPem)
    await put('key', (await pair('b')).keyPem.reveal())
    await expect(open().current()).rejects.toMatchObject({ code: 'CERT_KEY_MISMATCH' })
  })

  test('are looked at while somebody listens, even if nobody asks', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const [first, second] = [await pair('a'), await pair('b')]
      await write(first)
      const source = open()
      await source.current()
      const rotated = new Promise((resolve) => source.onRotate(resolve))
      await write(second)
      vi.advanceTimersByTime(5 * 60_000)
      await rotated
      source.dispose()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('the authorities of a cluster', () => {
  const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n`

  test('in a file are read again when it is replaced [CRED-K8]', async () => {
    await put('ca', pem('a'))
    const trust = fileTrust(at('ca'), clock)
    let changes = 0
    const stop = trust.onChange(() => changes++)
    expect(await trust.current()).toBe(pem('a'))
    await put('ca', pem('b'))
    clock.advance(10_000)
    expect(await trust.current()).toBe(pem('b'))
    expect(changes).toBe(1)
    await put('ca', 'rubbish')
    clock.advance(10_000)
    expect(await trust.current()).toBe(pem('b'))
    stop()
  })

  test('are refused if the file holds none', async () => {
    await put('ca', 'rubbish')
    await expect(fileTrust(at('ca'), clock).current()).rejects.toMatchObject({ code: 'FILE' })
  })

  test('inline go before those in a file; there may be none [CRED-K3]', async () => {
    const server = 'https://a'
    const both = { server, certificateAuthorityData: 'inline', certificateAuthority: at('ca') }
    expect(await trustSourceFor(both, clock)?.current()).toBe('inline')
    expect(trustSourceFor({ server }, clock)).toBeUndefined()
  })
})
