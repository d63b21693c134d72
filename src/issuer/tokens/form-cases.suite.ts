import { accepted, refused, type TokenCase } from './attempts.suite.ts'
import { headers } from './case-parts.suite.ts'
import type { TokenLab } from './token-lab.suite.ts'

const notBase64 = 'is not base64url'
const extension = 'requires an unsupported extension'

/** Another spelling of the same bytes: the bits that nobody reads are set. */
function strayBits(part: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(part.at(-1) ?? '')
  if (part.length % 4 === 0) throw new Error('this part has no stray bits')
  return part.slice(0, -1) + alphabet[last + 1]
}

/** A token of which each part has stray bits. */
function roomyToken(lab: TokenLab): string {
  for (let pad = ''; ; pad += 'x') {
    const token = lab.token({ claims: { pad } })
    if (token.split('.').every((part) => part.length % 4 > 0)) return token
  }
}

function strayIn(lab: TokenLab, index: number): string {
  const parts = roomyToken(lab).split('.')
  return parts.map((part, at) => (at === index ? strayBits(part) : part)).join('.')
}

/** Cases about the form of a token, from its header to its spelling. */
export const formCases: readonly TokenCase[] = [
  {
    title: '[ISS-T19] crit with known, unknown and no names',
    attempts: (lab) => [
      ...headers(
        lab,
        { known: { crit: ['exp'] }, b64: { crit: ['b64'], b64: false }, none: { crit: [] } },
        extension,
      ),
      ...headers(lab, { 'b64 alone': { b64: false } }, extension),
    ],
  },
  {
    title: '[ISS-T20] typ: missing and JWT accepted, JWE and at+jwt refused',
    attempts: (lab) => [
      accepted('missing', lab.token()),
      accepted('JWT', lab.token({ header: { typ: 'JWT' } })),
      ...headers(
        lab,
        { JWE: { typ: 'JWE' }, access: { typ: 'at+jwt' }, addon: { typ: 'k8s-addon+jwt' } },
        'has another purpose',
      ),
      ...headers(lab, { number: { typ: 1 } }, 'typ is not a string'),
    ],
  },
  {
    title: '[ISS-T30] 2, 4 and 5 parts',
    attempts: (lab) => {
      const [header, payload, signature] = lab.token().split('.')
      return [
        refused('2', `${header}.${payload}`),
        refused('4', `${header}.${payload}.${signature}.${signature}`),
        refused('5', `${header}.${header}.${payload}.${payload}.${signature}`),
        refused('1', 'token'),
      ]
    },
  },
  {
    title: '[ISS-T31] a JSON serialisation',
    attempts: (lab) => {
      const [header, payload, signature] = lab.token().split('.')
      return [
        refused('flattened', JSON.stringify({ protected: header, payload, signature })),
        refused(
          'general',
          JSON.stringify({ payload, signatures: [{ protected: header, signature }] }),
        ),
      ]
    },
  },
  {
    title: '[ISS-T32] spaces, line ends, a doubled Bearer',
    attempts: (lab) => [
      refused('space before', ` ${lab.token()}`, notBase64),
      refused('space after', `${lab.token()} `, notBase64),
      refused('line end', `${lab.token()}\n`, notBase64),
      refused('Bearer', `Bearer ${lab.token()}`, notBase64),
    ],
  },
  {
    title: '[ISS-T33] the standard alphabet, padding, stray characters',
    attempts: (lab) => [
      refused('alphabet', lab.token().replaceAll('-', '+').replaceAll('_', '/'), notBase64),
      refused('padding', `${lab.token()}==`, notBase64),
      refused('stray', `${lab.token()}!`, notBase64),
      refused('in the header', lab.token().replace('.', '!.'), notBase64),
    ],
  },
  {
    title: '[ISS-T34] non-canonical last bits in each part',
    attempts: (lab) => [
      accepted('none', roomyToken(lab)),
      refused('header', strayIn(lab, 0), `header ${notBase64}`),
      refused('payload', strayIn(lab, 1), `payload ${notBase64}`),
      refused('signature', strayIn(lab, 2), `signature ${notBase64}`),
    ],
  },
]
