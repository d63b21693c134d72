import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { labAuthority } from '../../http/tls-lab.suite.ts'
import { spkiPin } from '../../pki/index.ts'
import { parseBootstrapToken } from '../tokens/bootstrap-token.ts'
import { signWithToken } from '../tokens/signature.ts'
import { discoverCluster } from './discover-cluster.ts'
import { type LabAnswer, LabCluster, labToken, labTokenText } from './discovery-lab.suite.ts'
import type { DiscoveryOrder } from './options.ts'

let lab: LabCluster
beforeEach(async () => {
  lab = await LabCluster.open()
})
afterEach(() => lab.close())

const find = (order: Partial<DiscoveryOrder> & { readonly requireJwt?: boolean } = {}) =>
  discoverCluster({
    method: {
      by: 'token',
      addresses: [lab.address],
      token: labTokenText,
      requireJwt: order.requireJwt ?? false,
    },
    timeoutMs: 0,
    ...order,
  })

const text = (answer: LabAnswer): string => answer.body.toString()

/** Each changes what a client gets to see, as somebody in between can. */
const attacks: Readonly<Record<string, (answer: LabAnswer, authorization: string) => void>> = {
  '(a) one byte of the answer is changed': (answer) => {
    answer.body = text(answer).replace('kube-public', 'kube-publid')
  },
  '(a) one byte of the address is changed': (answer) => {
    answer.body = text(answer).replace('server: https://127', 'server: https://128')
  },
  '(a) a space is added': (answer) => {
    answer.body = `${text(answer)} `
  },
  '(c) the signature names another token': (answer) => {
    const other = parseBootstrapToken('zzzzzz.faddc87f5a5ab458')
    answer.headers['X-Kubernetes-JWS'] = signWithToken(text(answer), other)
  },
  'the signature is made with another secret': (answer) => {
    const other = parseBootstrapToken('ae23dc.0000000000000000')
    answer.headers['X-Kubernetes-JWS'] = signWithToken(text(answer), other)
  },
  'there are two signatures, one of them right': (answer) => {
    const right = String(answer.headers['X-Kubernetes-JWS'])
    answer.headers['X-Kubernetes-JWS'] = [right, right]
  },
  'the signature is no JWS': (answer) => {
    answer.headers['X-Kubernetes-JWS'] = 'yes'
  },
  'the signature has its middle part': (answer) => {
    const [head, , tail] = String(answer.headers['X-Kubernetes-JWS']).split('.')
    answer.headers['X-Kubernetes-JWS'] = `${head}.e30.${tail}`
  },
  'the signature is very long': (answer) => {
    answer.headers['X-Kubernetes-JWS'] = `${'a'.repeat(5000)}..a`
  },
  '(e) the request itself comes back': (answer, authorization) => {
    const [head, claims = '', signature] = authorization.replace('Bearer ', '').split('.')
    answer.body = Buffer.from(claims, 'base64url')
    answer.headers['X-Kubernetes-JWS'] = `${head}..${signature}`
  },
}

describe('[DISC-T3, DISC-R29] somebody in between', () => {
  test.each(Object.entries(attacks))('%s: signature-wrong', async (_name, attack) => {
    lab.bend = (answer, { authorization }) => attack(answer, authorization ?? '')
    await expect(find()).rejects.toMatchObject({ reason: 'signature-wrong', mayPass: false })
    expect(lab.requests).toHaveLength(1)
  })

  test('(b) the signature is taken away: signature-absent, and nothing is asked without one', async () => {
    lab.bend = (answer) => {
      delete answer.headers['X-Kubernetes-JWS']
    }
    await expect(find()).rejects.toMatchObject({ reason: 'signature-absent', mayPass: false })
    expect(lab.requests).toHaveLength(1)
  })

  test('(b) the signature in the document is taken away: signature-absent', async () => {
    lab.knowsSignedRequests = false
    lab.signs = false
    await expect(find()).rejects.toMatchObject({ reason: 'signature-absent', mayPass: true })
  })

  test('the document inside a signed answer has a wrong signature of its own', async () => {
    lab.bend = (answer) => {
      const map = JSON.parse(text(answer)) as { data: Record<string, string> }
      map.data['jws-kubeconfig-ae23dc'] = signWithToken('something else', labToken)
      answer.body = JSON.stringify(map)
      answer.headers['X-Kubernetes-JWS'] = signWithToken(answer.body, labToken)
    }
    await expect(find()).rejects.toMatchObject({ reason: 'signature-wrong' })
  })

  test('the document is changed on the way that needs no signed request: signature-wrong', async () => {
    lab.knowsSignedRequests = false
    lab.bend = (answer) => {
      answer.body = text(answer).replace('server: https://127', 'server: https://128')
    }
    await expect(find()).rejects.toMatchObject({ reason: 'signature-wrong' })
  })

  test('somebody forces that way: it is refused if signed requests are required', async () => {
    lab.knowsSignedRequests = false
    await expect(find({ requireJwt: true })).rejects.toMatchObject({ reason: 'auth-refused' })
    expect(lab.requests.every(({ authorization }) => authorization !== undefined)).toBe(true)
  })

  test('a signature of the document is passed off as one of an answer: document-invalid', async () => {
    lab.bend = (answer) => {
      answer.body = lab.kubeconfig
      answer.headers['X-Kubernetes-JWS'] = signWithToken(lab.kubeconfig, labToken)
    }
    await expect(find()).rejects.toMatchObject({ reason: 'document-invalid' })
  })

  test('(f) who holds the token appends a CA of their own: pin-mismatch [DISC-C1]', async () => {
    const theirs = await labAuthority('theirs')
    const { pin } = lab
    lab.roots = `${lab.ca.bundlePem}${theirs.bundlePem}`
    const finding = find({ pins: [pin] })
    await expect(finding).rejects.toMatchObject({
      reason: 'pin-mismatch',
      pinsSeen: [pin, expect.stringMatching(/^sha256:/)],
    })
    await expect(finding).rejects.toThrow(pin)
    // Nothing was asked under the roots that are not trusted.
    expect(lab.requests).toHaveLength(1)
  })

  /** OpenSSL trusts the second root in each; pins must not overlook it. */
  const hiddenRoots: Readonly<Record<string, (pinned: string, theirs: string) => string>> = {
    'a control character behind its boundaries': (pinned, theirs) =>
      `${pinned}${theirs.replaceAll(/-----$/gm, '$&\x01')}`,
    'a letter behind its boundaries': (pinned, theirs) =>
      `${pinned}${theirs.replaceAll(/-----$/gm, '$&é')}`,
    'a long line before it': (pinned, theirs) =>
      `${'x'.repeat(254)}${theirs.replace(/(END CERTIFICATE-----)/, '$1\x01')}${pinned}`,
  }

  test.each(Object.entries(hiddenRoots))(
    '(f) a CA is hidden from the pins by %s: document-invalid [SEC-R2301]',
    async (_name, hide) => {
      const pinned = await labAuthority('pinned')
      lab.roots = hide(pinned.bundlePem, lab.ca.bundlePem)
      const pins = [spkiPin(pinned.certificate)]
      await expect(find({ pins })).rejects.toMatchObject({ reason: 'document-invalid' })
      expect(lab.requests).toHaveLength(1)
    },
  )

  test('the roots that were checked are written anew, without what stands between them [SEC-R2301]', async () => {
    const { bundlePem } = lab.ca
    lab.roots = `# a comment\n${bundlePem.replaceAll('\n', '  \r\n')}\n${bundlePem}`
    const { cluster } = await find({ pins: [lab.pin] })
    expect(cluster.certificateAuthorityData).toBe(lab.ca.certificate.toString())
  })

  test('(f) who holds the token shows a CA of their own: pin-mismatch', async () => {
    lab.roots = (await labAuthority('theirs')).bundlePem
    await expect(find({ pins: [lab.pin] })).rejects.toMatchObject({ reason: 'pin-mismatch' })
  })

  test("(g) yesterday's answer with a CA that is gone: server-not-trusted", async () => {
    lab.roots = (await labAuthority('yesterday')).bundlePem
    const yesterday = { body: lab.body, signature: signWithToken(lab.body, labToken) }
    lab.roots = lab.ca.bundlePem
    lab.bend = (answer) => {
      answer.body = yesterday.body
      answer.headers['X-Kubernetes-JWS'] = yesterday.signature
    }
    await expect(find()).rejects.toMatchObject({ reason: 'server-not-trusted', mayPass: false })
  })

  test("(g) yesterday's answer with another address: second-fetch-differs", async () => {
    const today = lab.advertised
    lab.advertised = 'https://yesterday:6443'
    const yesterday = { body: lab.body, signature: signWithToken(lab.body, labToken) }
    lab.advertised = today
    lab.bend = (answer) => {
      if (lab.requests.length > 1) return
      answer.body = yesterday.body
      answer.headers['X-Kubernetes-JWS'] = yesterday.signature
    }
    await expect(find()).rejects.toMatchObject({ reason: 'second-fetch-differs' })
  })

  test.each([301, 302, 307, 308])(
    '(h) a redirect (%d): not-a-cluster, and it is not followed',
    async (status) => {
      lab.bend = (answer) => {
        answer.status = status
        answer.headers['location'] = `${lab.address}/elsewhere`
      }
      await expect(find()).rejects.toMatchObject({ reason: 'not-a-cluster', mayPass: false })
      expect(lab.requests).toHaveLength(1)
    },
  )
})

test('[DISC-T1, DISC-T3] the vector of a reflected request is refused though its MAC is right', async () => {
  lab.bend = (answer) => {
    answer.body = '{"sub":"ae23dc","iat":1500000000,"exp":1500000120}'
    answer.headers['X-Kubernetes-JWS'] =
      'eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6ImFlMjNkYyJ9..Hr2dpfWf0spgIANV6lZo_UTXScemCjsYYmxvkcAdmEE'
  }
  await expect(find()).rejects.toMatchObject({ reason: 'signature-wrong' })
  await expect(find()).rejects.toThrow('one of a request')
})

describe('[DISC-R27] what is sent before the server is trusted', () => {
  /** The secret in every form in which it could be smuggled out. */
  const forms = (secret: string): string[] => {
    const bytes = Buffer.from(secret)
    const shifted = [0, 1, 2].map((pad) =>
      // Base64 of a text depends on where it begins; the middle part is what any of them has.
      Buffer.concat([Buffer.alloc(pad), bytes])
        .toString('base64')
        .slice(4, -4),
    )
    return [
      secret,
      secret.toUpperCase(),
      Buffer.from(bytes.toReversed()).toString(),
      bytes.toString('hex'),
      ...shifted,
      ...shifted.map((part) => part.replaceAll('+', '-').replaceAll('/', '_')),
      encodeURIComponent(secret),
    ]
  }
  /** What was sent, and what of it can be decoded. */
  const readable = (bytes: Buffer): string => {
    const sent = bytes.toString('latin1')
    const words = sent.split(/[^\w+/=-]+/)
    return [
      sent,
      ...words.map((word) => Buffer.from(word, 'base64').toString('latin1')),
      ...words.map((word) => Buffer.from(word, 'hex').toString('latin1')),
    ].join('\n')
  }

  test.each([true, false])(
    'has the secret in no encoding (signed requests understood: %s)',
    async (knowsSignedRequests) => {
      lab.knowsSignedRequests = knowsSignedRequests
      await find()
      const sent = readable(Buffer.concat(lab.received))
      expect(sent).toContain(labToken.id)
      for (const form of forms(labToken.secret.reveal())) expect(sent).not.toContain(form)
    },
  )

  test('is one GET per connection, of the well-known path [DISC-R25, DISC-R26, DISC-R30]', async () => {
    await find()
    expect(lab.requests.map(({ method, path }) => [method, path])).toEqual([
      ['GET', '/api/v1/namespaces/kube-public/configmaps/cluster-info'],
      ['GET', '/api/v1/namespaces/kube-public/configmaps/cluster-info'],
    ])
    const heads = Buffer.concat(lab.received).toString('latin1').match(/^GET /gm)
    expect(heads).toHaveLength(2)
    expect(
      Buffer.concat(lab.received)
        .toString('latin1')
        .match(/connection: close/gi),
    ).toHaveLength(2)
  })

  test('is signed for a minute from now [DISC-R34]', async () => {
    const startedAt = Math.floor(Date.now() / 1000)
    await find()
    await find()
    const claims = lab.requests.map(({ authorization = '' }) => {
      const [, payload = ''] = authorization.split('.')
      return JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number }
    })
    for (const { exp } of claims) expect(exp - startedAt).toBeGreaterThanOrEqual(60)
    for (const { exp } of claims) expect(exp * 1000).toBeLessThanOrEqual(Date.now() + 60_000)
  })
})

test('a certificate for another name is refused with the names it has', async () => {
  lab.more = '    tls-server-name: api.example.com\n'
  const finding = find()
  await expect(finding).rejects.toMatchObject({ reason: 'server-not-trusted' })
  await expect(finding).rejects.toThrow(/certificate is for other names.*localhost/)
})
