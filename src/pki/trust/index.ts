export { generateEcKey, privateKeyPem, publicKeyOf } from '../keys.ts'
export { PemInvalid, parseCertificates } from '../pem.ts'
export { spkiPin } from '../spki-pin.ts'
