import { createHmac, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import {
  type LabCertificate,
  labCertificate,
  labNow,
  named,
  usage,
} from '../../pki/certificate-lab.suite.ts'
import { createAddonTokenMinter } from './mint.ts'
import type { AddonSigner } from './signing-key.ts'
import {
  type Forgery,
  forgedToken,
  keyKinds,
  LabBundle,
  LabClock,
  labCa,
  labLeaf,
  labSigner,
  sans,
  segmentOf,
} from './token-lab.suite.ts'
import { addonVerificationKey, RemoteAddonKeys } from './verification-keys.ts'
import { AddonTokenVerifier } from './verifier.ts'
import { X5cKeys } from './x5c-keys.ts'

const serverName = 'kubernetes.default.svc'
const audiences = new Set(['kube-system/dashboard'])
const now = Math.floor(labNow / 1000)

let ca: LabCertificate
let signer: AddonSigner
beforeAll(async () => {
  ca = await labCa()
  signer = labSigner(await labLeaf(ca))
})

function lab(bundle = new LabBundle(ca)) {
  const clock = new LabClock()
  const keys = [new X5cKeys({ bundle, serverName, clock })]
  const verifier = new AddonTokenVerifier({ keys, clock })
  return { bundle, clock, verifier }
}

async function verdict(token: string, { verifier } = lab()): Promise<string> {
  try {
    return (await verifier.verify(token, audiences)).user
  } catch (error) {
    return (error as { code: string }).code
  }
}

describe('by x5c [ADDON-R26]', () => {
  test.each(keyKinds)('a token of the serving key is good: %s', async (_alg, makeKey) => {
    const own = labSigner(await labLeaf(ca, { key: makeKey() }))
    const { verifier, clock } = lab()
    const extra = { a: ['b'] }
    const token = await createAddonTokenMinter({ signer: own, clock }).mint({
      user: 'ann',
      uid: 'u1',
      groups: ['g'],
      extra,
      namespace: 'kube-system',
      service: 'dashboard',
      auditId: 'x',
    })
    expect(await verifier.verify(token, audiences)).toMatchObject({
      user: 'ann',
      uid: 'u1',
      groups: ['g'],
      extra,
      auditId: 'x',
      audience: 'kube-system/dashboard',
      expiresAt: (now + 60) * 1000,
    })
  })

  test.each<[name: string, order: () => Promise<AddonSigner>]>([
    [
      'a kubelet as client',
      async () =>
        labSigner(
          await labLeaf(ca, { subject: named('system:node:n1'), usages: [usage.clientAuth] }),
        ),
    ],
    ['a kubelet as server', async () => labSigner(await labLeaf(ca, { extensions: [sans('n1')] }))],
    [
      'a kubelet that was let bear the name of the server [ADDON-X13]',
      async () => labSigner(await labLeaf(ca, { subject: named('system:node:n1') })),
    ],
    [
      'a user, though named like the server',
      async () => labSigner(await labLeaf(ca, { usages: [usage.clientAuth] })),
    ],
    ['nobody but itself', async () => labSigner(await labCa())],
    ['the CA itself', async () => labSigner(ca)],
    [
      'an API server of yesterday',
      async () => labSigner(await labLeaf(ca, { notAfter: labNow - 1 })),
    ],
    ['an API server elsewhere', async () => labSigner(await labLeaf(await labCa()))],
    ['a chain in the wrong order', async () => labSigner(ca, await labLeaf(ca))],
    ['a chain of fifty', async () => labSigner(...Array.from({ length: 50 }, () => ca))],
  ])('the signer may not be %s [ADDON-R27, ADDON-T23]', async (_name, order) => {
    expect(await verdict(forgedToken(await order()))).toMatch(/^bad-(signer|header)$|^too-large$/)
  })

  test('an intermediate CA in the chain is followed', async () => {
    const middle = await labLeaf(ca, { subject: named('middle'), ca: true, extensions: [] })
    expect(await verdict(forgedToken(labSigner(await labLeaf(middle), middle)))).toBe('bob')
  })

  test('a CA that ends before what it has signed is soon believed no longer', async () => {
    const hourMs = 3_600_000
    const old = await labCertificate({
      subject: named('kubernetes'),
      ca: true,
      notAfter: labNow + hourMs,
    })
    const parts = lab(new LabBundle(old))
    const own = labSigner(await labLeaf(old))
    const later = (ms: number): string => {
      const at = now + ms / 1000
      return forgedToken(own, { claims: { iat: at, nbf: at, exp: at + 60 } })
    }
    parts.clock.turn(hourMs - 60_000)
    expect(await verdict(later(hourMs - 60_000), parts)).toBe('bob')
    parts.clock.turn(600_000)
    expect(await verdict(later(hourMs + 540_000), parts)).toBe('bad-signer')
  })

  test('a new CA is believed and an old one no longer, at once', async () => {
    const { bundle, ...rest } = lab()
    const token = forgedToken(signer)
    expect(await verdict(token, { bundle, ...rest })).toBe('bob')
    const next = await labCa()
    bundle.replace(next)
    expect(await verdict(token, { bundle, ...rest })).toBe('bad-signer')
    expect(await verdict(forgedToken(labSigner(await labLeaf(next))), { bundle, ...rest })).toBe(
      'bob',
    )
  })
})

describe('a token is refused', () => {
  const attacker = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  test.each<[name: string, forgery: Forgery, code: string]>([
    ['of another type', { header: { typ: 'JWT' } }, 'wrong-type'],
    ['without a type', { header: { typ: undefined } }, 'wrong-type'],
    ['of another issuer', { claims: { iss: 'https://idp' } }, 'wrong-issuer'],
    ['with the kid of another key', { header: { kid: 'x' } }, 'bad-signer'],
    ['with jku', { header: { jku: 'http://169.254.169.254' } }, 'bad-header'],
    [
      'with an embedded key',
      { header: { jwk: attacker.publicKey.export({ format: 'jwk' }) } },
      'bad-header',
    ],
    ['with zip', { header: { zip: 'DEF' } }, 'bad-header'],
    ['with cty', { header: { cty: 'JWT' } }, 'bad-header'],
    ['with crit', { header: { crit: ['x'] } }, 'bad-header'],
    ['without keys', { header: { x5c: undefined } }, 'unknown-key'],
    ['with a text as x5c', { header: { x5c: 'abc' } }, 'bad-header'],
    ['with an empty x5c', { header: { x5c: [] } }, 'bad-header'],
    ['with junk in x5c', { header: { x5c: ['AAAA'] } }, 'bad-header'],
    ['with another algorithm', { header: { alg: 'RS256' } }, 'bad-algorithm'],
    ['with alg none', { header: { alg: 'none' } }, 'bad-algorithm'],
    ['without a subject', { claims: { sub: undefined } }, 'bad-claims'],
    ['with a number as subject', { claims: { sub: 1 } }, 'bad-claims'],
    ['without an end', { claims: { exp: undefined } }, 'bad-claims'],
    ['without an issue time', { claims: { iat: undefined } }, 'bad-claims'],
    ['that has ended beyond the leeway', { claims: { iat: now - 100, exp: now - 11 } }, 'expired'],
    ['from the future', { claims: { iat: now + 11 } }, 'not-yet-valid'],
    ['made for too long', { claims: { exp: now + 301 } }, 'lives-too-long'],
    ['without an audience', { claims: { aud: undefined } }, 'wrong-audience'],
    ['with an empty audience', { claims: { aud: [] } }, 'bad-claims'],
    ['for another Service', { claims: { aud: ['kube-system/other'] } }, 'wrong-audience'],
    ['for several', { claims: { aud: ['kube-system/dashboard', 'a/b'] } }, 'wrong-audience'],
    ['with odd groups', { claims: { groups: 'admins' } }, 'bad-claims'],
    ['with odd extra', { claims: { 'k8s.extra': { a: 'b' } } }, 'bad-claims'],
    ['with a subject twice', { payload: '{"sub":"a","sub":"b"}' }, 'bad-claims'],
  ])('%s [ADDON-R25]', async (_name, forgery, code) => {
    expect(await verdict(forgedToken(signer, forgery))).toBe(code)
  })

  test('signed by HMAC with the public key', async () => {
    const pem = String(createPublicKey(signer.current.key).export({ type: 'spki', format: 'pem' }))
    const [header = '', payload = ''] = forgedToken(signer, { header: { alg: 'HS256' } }).split('.')
    const mac = createHmac('sha256', pem).update(`${header}.${payload}`).digest()
    expect(await verdict(`${header}.${payload}.${segmentOf(mac)}`)).toBe('bad-algorithm')
  })

  test.each([
    ['none', Buffer.alloc(0)],
    ['nothing but zeros', Buffer.alloc(64)],
    ['too short', Buffer.alloc(63, 1)],
    ['too long', Buffer.alloc(65, 1)],
  ])('with a signature that is %s', async (_name, signature) => {
    const [header = '', payload = ''] = forgedToken(signer).split('.')
    expect(await verdict(`${header}.${payload}.${segmentOf(signature)}`)).toBe('bad-signature')
  })
})

test('a token is good within the leeway and not after it [ADDON-R20, ADDON-T31]', async () => {
  const { clock, ...rest } = lab()
  const token = forgedToken(signer)
  const ask = () => verdict(token, { clock, ...rest })
  expect(await ask()).toBe('bob')
  clock.turn(70_000)
  expect(await ask()).toBe('bob')
  clock.turn(1)
  expect(await ask()).toBe('expired')
})

test('a clock that is put back makes no token last [ADDON-T63]', async () => {
  const { clock, ...rest } = lab()
  const token = forgedToken(signer)
  expect(await verdict(token, { clock, ...rest })).toBe('bob')
  clock.turn(-3_600_000)
  expect(await verdict(token, { clock, ...rest })).toBe('not-yet-valid')
})

describe('by keys that are asked for [ADDON-R26]', () => {
  function asked() {
    const clock = new LabClock()
    const ended = new AbortController()
    let shown = [addonVerificationKey(createPublicKey(signer.current.key))]
    let loads = 0
    let broken = false
    const load = async () => {
      loads += 1
      if (broken) throw new Error('nobody is there')
      return shown
    }
    const log = silentLogger
    const source = new RemoteAddonKeys({ name: 'jwks', load, clock, log, signal: ended.signal })
    const verifier = new AddonTokenVerifier({ keys: [source], clock })
    const byKid = (own: AddonSigner, kid: string = own.current.kid) => {
      const iat = Math.floor(clock.now() / 1000)
      const times = { iat, nbf: iat, exp: iat + 60 }
      return forgedToken(own, { header: { x5c: undefined, kid }, claims: times })
    }
    return {
      clock,
      byKid,
      ask: (own: AddonSigner, kid?: string) =>
        verdict(byKid(own, kid), { verifier, clock, bundle: new LabBundle() }),
      loads: () => loads,
      show: (...signers: readonly AddonSigner[]) => {
        shown = signers.map(({ current }) => addonVerificationKey(createPublicKey(current.key)))
      },
      setBroken: (is: boolean) => {
        broken = is
      },
    }
  }
  const another = async () => labSigner(await labLeaf(ca))

  test('a new key is asked for at once, and the old one is refused after its grace [ADDON-T62, ADDON-G3]', async () => {
    const { ask, show, clock } = asked()
    expect(await ask(signer)).toBe('bob')
    const next = await another()
    show(next)
    clock.turn(5_000)
    expect(await ask(next)).toBe('bob')
    expect(await ask(signer)).toBe('bob')
    clock.turn(300_001)
    expect(await ask(await another())).toBe('unknown-key')
    expect(await ask(next)).toBe('bob')
    expect(await ask(signer)).toBe('unknown-key')
  })

  test('two API servers behind one address are both believed [ADDON-T62]', async () => {
    const { ask, show, clock } = asked()
    const other = await another()
    for (let round = 0; round < 4; round++) {
      show(round % 2 === 0 ? signer : other)
      clock.turn(60_000)
      await ask(await another())
    }
    expect([await ask(signer), await ask(other)]).toEqual(['bob', 'bob'])
  })

  test('a flood of strange kids asks once [ADDON-T20]', async () => {
    const { ask, loads } = asked()
    await ask(signer)
    const kids = ['../../etc/passwd', "' OR 1=1", '__proto__', 'k'.repeat(1024)]
    for (const kid of kids) expect(await ask(signer, kid)).toBe('unknown-key')
    await Promise.all(Array.from({ length: 50 }, (_, index) => ask(signer, `kid-${index}`)))
    expect(loads()).toBe(1)
  })

  test('while nothing can be asked the keys are believed for an hour, and then none is', async () => {
    const { ask, clock, setBroken } = asked()
    expect(await ask(signer)).toBe('bob')
    setBroken(true)
    clock.turn(3_600_000)
    expect(await ask(signer)).toBe('bob')
    clock.turn(1)
    expect(await ask(signer)).toBe('keys-unavailable')
    setBroken(false)
    clock.turn(5_000)
    expect(await ask(signer)).toBe('bob')
  })
})
