import { type ContestCase, credential, execUser, type Place, printing } from '../contest-case.ts'

const exec = printing(credential({ token: 'exec-token' }))
const files = {
  token: ['file-token\n', 0o600],
  'token-padded': ['  file-token \n\n', 0o600],
  'token-empty': ['', 0o600],
} as const
const pair = ({ cert, key }: Place): object => ({ 'client-certificate': cert, 'client-key': key })
const beside = (name: string, others: object | ((place: Place) => object)): ContestCase => ({
  name: `beside exec: ${name}`,
  files,
  user: (place) => ({ ...exec, ...(typeof others === 'function' ? others(place) : others) }),
})
const without = (name: string, user: ContestCase['user']): ContestCase => ({
  name: `without exec: ${name}`,
  files,
  user,
})

/** Table 2.6 of the fact sheet: which of several credentials of a user counts. */
export const precedenceCases: readonly ContestCase[] = [
  beside('nothing', {}),
  beside('token', { token: 'static-token' }),
  beside('an empty token', { token: '' }),
  beside('tokenFile', { tokenFile: 'token' }),
  beside('token and tokenFile', { token: 'static-token', tokenFile: 'token' }),
  beside('username and password', { username: 'jane', password: 'secret' }),
  beside('username', { username: 'jane' }),
  beside('password', { password: 'secret' }),
  beside('client certificate and key', pair),
  beside('client certificate without its key', ({ cert }) => ({ 'client-certificate': cert })),
  beside('client key without its certificate', ({ key }) => ({ 'client-key': key })),
  beside('everything', (place) => ({ ...pair(place), token: 'static-token', username: 'jane' })),
  { ...beside('http:// server', {}), plainHttp: true },
  { ...beside('http:// server and token', { token: 'static-token' }), plainHttp: true },
  without('nothing', {}),
  without('token', { token: 'static-token' }),
  without('tokenFile', { tokenFile: 'token' }),
  without('tokenFile with spaces round it', { tokenFile: 'token-padded' }),
  without('tokenFile that is empty', { tokenFile: 'token-empty' }),
  without('tokenFile that is empty, and token', {
    tokenFile: 'token-empty',
    token: 'static-token',
  }),
  without('tokenFile that is missing', { tokenFile: 'token-missing' }),
  without('tokenFile that is missing, and token', { tokenFile: 'nowhere', token: 'static-token' }),
  without('client certificate that is missing', ({ key }) => ({
    'client-certificate': 'nowhere.crt',
    'client-key': key,
  })),
  without('client certificate and key that do not belong together', ({ cert, caKey }) => ({
    'client-certificate': cert,
    'client-key': caKey,
  })),
  without('token and tokenFile', { token: 'static-token', tokenFile: 'token' }),
  without('token and username', { token: 'static-token', username: 'jane', password: 'secret' }),
  without('username and password', { username: 'jane', password: 'secret' }),
  without('client certificate', pair),
  without('client certificate and token', (place) => ({ ...pair(place), token: 'static-token' })),
  { ...without('token, http:// server', { token: 'static-token' }), plainHttp: true },
  {
    name: 'exec alone, which gives a certificate',
    user: (place) =>
      execUser('fresh-certificate', {
        CA_CERT: place.caCert,
        CA_KEY: place.caKey,
        SUBJECT: 'both-user',
      }),
  },
]
