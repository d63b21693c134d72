import { randomBytes, X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Secret, silentLogger } from '../../core/index.ts'
import { parseCompactJws, parseJwk } from '../../jose/index.ts'
import { labNow } from '../../pki/certificate-lab.suite.ts'
import type { ServingMaterial } from '../../pki/index.ts'
import { openMemoryStore, SealedStore } from '../../storage/index.ts'
import { createAddonTokenMinter } from './mint.ts'
import { DedicatedKeySigner, ServingKeySigner } from './signers.ts'
import { keyKinds, LabClock, labCa, labLeaf, labSigner } from './token-lab.suite.ts'

const ann = { user: 'ann', namespace: 'kube-system', service: 'dashboard' }
const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(String(parseCompactJws(token).payload)) as Record<string, unknown>

async function labMinter() {
  const ca = await labCa()
  const clock = new LabClock()
  return { ca, minter: createAddonTokenMinter({ signer: labSigner(await labLeaf(ca)), clock }) }
}

describe('a minted token', () => {
  test('is a compact JWS of the profile [ADDON-R18, ADDON-R20, ADDON-R21]', async () => {
    const { minter } = await labMinter()
    const token = await minter.mint({ ...ann, auditId: 'a1' })
    const { header } = parseCompactJws(token)
    expect(header).toMatchObject({ alg: 'ES256', typ: 'k8s-addon+jwt', kid: expect.any(String) })
    const iat = Math.floor(labNow / 1000)
    expect(claimsOf(token)).toEqual({
      iss: 'sallyport.dev/addon',
      sub: 'ann',
      aud: ['kube-system/dashboard'],
      iat,
      nbf: iat,
      exp: iat + 60,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      cid: 'a1',
    })
  })

  test('states identity and nothing else: groups, uid and extra only when given [ADDON-R3]', async () => {
    const { minter } = await labMinter()
    expect(Object.keys(claimsOf(await minter.mint(ann))).sort()).toEqual(
      ['aud', 'exp', 'iat', 'iss', 'jti', 'nbf', 'sub'].sort(),
    )
    const more = { uid: 'u', groups: ['a,b', 'c|d'], extra: { 'example.com/x': ['1'] } }
    const { uid, groups, 'k8s.extra': extra } = claimsOf(await minter.mint({ ...ann, ...more }))
    expect({ uid, groups, extra }).toEqual(more)
  })

  test.each([
    'system:serviceaccount:ns:name',
    'https://idp.example#123',
    ' two  spaces ',
    '山田 😀',
    'a"b\\c\nd',
  ])('has the user %j unchanged as its subject [ADDON-R19]', async (user) => {
    const { minter } = await labMinter()
    expect(claimsOf(await minter.mint({ ...ann, user }))['sub']).toBe(user)
  })
})

async function materialOf(key: ReturnType<(typeof keyKinds)[number][1]>): Promise<ServingMaterial> {
  const ca = await labCa()
  const { certificate } = await labLeaf(ca, { key })
  return {
    certificate,
    certPem: `${certificate.toString()}${ca.certificate.toString()}`,
    keyPem: new Secret(String(key.export({ type: 'pkcs8', format: 'pem' }))),
  }
}

describe('the serving key', () => {
  test.each(keyKinds)(
    'signs with %s and shows its certificate without the root [ADDON-R22]',
    async (alg, makeKey) => {
      const material = await materialOf(makeKey())
      const signer = new ServingKeySigner({ current: material })
      const token = await createAddonTokenMinter({ signer, clock: new LabClock() }).mint(ann)
      const { header } = parseCompactJws(token)
      expect(header.alg).toBe(alg)
      const { x5c } = header.members as { x5c: readonly string[] }
      expect(x5c).toEqual([material.certificate.raw.toString('base64')])
      expect(new X509Certificate(Buffer.from(x5c[0] ?? '', 'base64')).serialNumber).toBe(
        material.certificate.serialNumber,
      )
      expect(token.length).toBeLessThan(4096)
    },
  )

  test('is followed when it is replaced [ADDON-R22]', async () => {
    const [, makeKey] = keyKinds[0] ?? []
    if (!makeKey) throw new TypeError('no key')
    const serving = { current: await materialOf(makeKey()) }
    const signer = new ServingKeySigner(serving)
    const before = signer.current
    expect(signer.current).toBe(before)
    serving.current = await materialOf(makeKey())
    expect(signer.current.kid).not.toBe(before.kid)
    expect(signer.current.x5c).toEqual([serving.current.certificate.raw.toString('base64')])
  })
})

describe('a dedicated key', () => {
  const open = async () => {
    const values = new SealedStore(openMemoryStore(), randomBytes(32), silentLogger)
    const ended = new AbortController()
    const options = { values, log: silentLogger, signal: ended.signal }
    return { values, ended, options, signer: await DedicatedKeySigner.open(options) }
  }

  test('is made once, shared by all servers and published as a JWK set [ADDON-R22]', async () => {
    const { ended, options, signer } = await open()
    const other = await DedicatedKeySigner.open(options)
    expect(other.current.kid).toBe(signer.current.kid)
    expect(signer.current).toMatchObject({ alg: 'ES256' })
    expect(signer.current.x5c).toBeUndefined()
    const { keys } = JSON.parse(String(signer.document)) as { keys: unknown[] }
    expect(keys.map((key) => parseJwk(key)?.kid)).toEqual([signer.current.kid])
    expect(String(signer.document)).not.toContain('"d"')
    ended.abort()
  })

  test('rotates on every server: the old one stays published, a damaged one changes nothing [SEC-R904]', async () => {
    const { values, ended, options, signer } = await open()
    const other = await DedicatedKeySigner.open(options)
    const old = signer.current.kid
    await signer.rotate(ended.signal)
    expect(signer.current.kid).not.toBe(old)
    expect(String(signer.document)).toContain(old)
    const { kid } = signer.current
    expect([other.current.kid, String(other.document)]).toEqual([kid, String(signer.document)])
    await values.change('addon-token-key', () => Buffer.from('rubbish'), ended.signal)
    expect([signer.current.kid, other.current.kid]).toEqual([kid, kid])
    ended.abort()
  })
})
