// The script with which pages give the web SDK tokens of a provider other than Firebase Authentication.
//
// The SDK takes tokens from its component `auth-internal` alone, which Firebase Authentication provides otherwise.

internal import HTTPProtocols

/// Answers `GET /hearth-auth.js`.
enum AuthScript {
    static func answer(_ exchange: HTTPExchange) {
        exchange.addField("Cache-Control", "public, max-age=3600")
        exchange.addField("X-Content-Type-Options", "nosniff")
        exchange.reply(.ok, contentType: "text/javascript; charset=utf-8") { $0.append(utf8: text) }
    }

    static let text = #"""
        // Tokens for Firebase's web SDK, from the page and not from Firebase Authentication.
        //
        //   import { provideTokens } from "https://db.example.org/hearth-auth.js";
        //
        //   const tokens = provideTokens(app, async (forceRefresh) => token);
        //   tokens.changed(); // after a user has signed in or out
        //
        // `app` is a FirebaseApp without Firebase Authentication. The function returns the user's JSON Web Token, or
        // null without a user. With `forceRefresh` the last token has expired or was refused: it returns a new one.

        // Seconds before a token's end from which on it is not used.
        const marginSeconds = 30;

        // The claims of a token. The server verifies them; here they name the user and the token's end.
        function claimsOf(token) {
          const text = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
          return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (unit) => unit.charCodeAt(0))));
        }

        class Tokens {
          #ask;
          #token; // Undefined before the page has been asked.
          #claims = {};
          #listeners = new Set();
          #last = Promise.resolve();

          constructor(ask) {
            this.#ask = ask;
          }

          // Asks the page, after earlier questions have been answered.
          load(forceRefresh) {
            const loaded = this.#last.then(() => this.#ask(forceRefresh)).then((token) => this.#take(token ?? null));
            this.#last = loaded.catch(() => {});
            return loaded;
          }

          #take(token) {
            this.#claims = token === null ? {} : claimsOf(token);
            if (token === this.#token) return;
            this.#token = token;
            for (const listener of this.#listeners) listener(token);
          }

          // What the SDK calls.

          getUid() {
            return this.#claims.user_id ?? this.#claims.sub ?? null;
          }

          async getToken(forceRefresh = false) {
            await this.#last;
            const isEnding = Date.now() / 1000 > this.#claims.exp - marginSeconds;
            if (forceRefresh || isEnding || this.#token === undefined) await this.load(forceRefresh || isEnding);
            return this.#token === null ? null : { accessToken: this.#token };
          }

          // The SDK sends nothing until the listener has been called once.
          addAuthTokenListener(listener) {
            this.#listeners.add(listener);
            if (this.#token !== undefined) listener(this.#token);
            else this.load(false).catch(() => listener(null));
          }

          removeAuthTokenListener(listener) {
            this.#listeners.delete(listener);
          }
        }

        // Makes a FirebaseApp's Firestore ask `getToken` for tokens. Throws if the app has Firebase Authentication.
        export function provideTokens(app, getToken) {
          const tokens = new Tokens(getToken);
          app.container.addComponent({
            name: "auth-internal",
            instanceFactory: () => tokens,
            type: "PRIVATE",
            multipleInstances: false,
            instantiationMode: "EAGER",
            serviceProps: {},
            onInstanceCreated: null,
          });
          // Resolves when the SDK has the new user; fails as `getToken` does.
          return { changed: () => tokens.load(false) };
        }

        """#
}
