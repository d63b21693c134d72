// openid-client is made for logins: it verifies a token only as part of the answer of a token endpoint. So each
// token is handed to it as the answer of one that exists in this process only; discovery and the keys are real.
import process from 'node:process'
import * as client from 'openid-client'
import { answerLines } from './answer-lines.mjs'

const [issuer, audience] = process.argv.slice(2)
const tokenEndpoint = 'https://token-endpoint.invalid/'
const discovered = await client.discovery(new URL(issuer), audience, undefined, client.None())
const metadata = { ...discovered.serverMetadata(), token_endpoint: tokenEndpoint }
const config = new client.Configuration(metadata, audience, undefined, client.None())
// Without this it trusts the TLS of the token endpoint and looks at no signature.
client.enableNonRepudiationChecks(config)

let arrived = ''
config[client.customFetch] = (url, options) =>
  url === tokenEndpoint
    ? Response.json({ access_token: 'none', token_type: 'bearer', id_token: arrived })
    : fetch(url, options)

await answerLines(async (token) => {
  arrived = token
  const answer = await client.genericGrantRequest(config, 'urn:sallyport:arrived', {})
  return answer.claims()
})
