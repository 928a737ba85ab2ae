import { createPasswords } from '../../src/modules/accounts/passwords.ts'
import { createAccountStore } from '../../src/modules/accounts/store.ts'
import {
  addressOf,
  admins,
  atScale,
  cast,
  type Dataset,
  differs,
  type Fill,
  password,
} from './dataset.ts'

/** How many are there beside the busy one at scale 1, the cast among them. */
export const otherPeople = 10_000

export const peopleFill: Fill = {
  name: 'people',
  fill: fillPeople,
  rules: ({ scale }) => ({
    'as many people as planned': differs('users', atScale(otherPeople, scale) + 1),
  }),
}

async function fillPeople({ orm, landmarks, newId, clock, repeat }: Dataset) {
  const accounts = createAccountStore(orm)
  // Hashing is meant to be slow: everybody has the same password, hashed once.
  const passwordHash = await createPasswords().hash(password)
  repeat(atScale(otherPeople, landmarks.scale) + 1, (n) => {
    const { id } = accounts.insert({
      id: newId(),
      email: addressOf(n),
      displayName: `Person ${n}`,
      locale: 'en',
      role: admins.some((admin) => admin === cast[n]) ? 'admin' : 'user',
      emailVerified: true,
      passwordHash,
      createdAt: clock.now(),
    })
    landmarks.people.push(id)
  })
}
