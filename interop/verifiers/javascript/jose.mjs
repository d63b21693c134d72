// jose has no discovery: the document is fetched here and gives it the address of the key set and the algorithms.
import process from 'node:process'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { answerLines } from './answer-lines.mjs'

const [issuer, audience] = process.argv.slice(2)
const response = await fetch(`${issuer}/.well-known/openid-configuration`)
const document = await response.json()
if (document.issuer !== issuer) throw new Error(`the document is of ${document.issuer}`)
const keys = createRemoteJWKSet(new URL(document.jwks_uri))
const algorithms = document.id_token_signing_alg_values_supported

await answerLines(async (token) => {
  const demands = { issuer, audience, algorithms, requiredClaims: ['exp', 'sub'] }
  const { payload } = await jwtVerify(token, keys, demands)
  return payload
})
