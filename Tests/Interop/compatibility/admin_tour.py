"""Real work through firebase-admin against the server that FIRESTORE_EMULATOR_HOST names: an order book of a small shop.

Prints a line for each thing done, and at the end how many; any surprise is an exception.
"""

import asyncio
import datetime

import firebase_admin
from firebase_admin import firestore, firestore_async
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import DELETE_FIELD, FieldFilter, Increment
from google.cloud.firestore_v1.base_query import And, Or


class Credential(firebase_admin.credentials.Base):
    def get_credential(self):
        return AnonymousCredentials()


done = []


def tell(text):
    done.append(text)
    print(text, flush=True)


def stock(db):
    """A bulk of products, listed, counted and paged through."""
    batch = db.batch()
    for number in range(200):
        product = db.collection("products").document(f"p{number:03d}")
        batch.set(product, {"name": f"product {number}", "price": number * 1.5, "stock": 10, "tags": ["new"] if number % 2 else []})
    batch.commit()
    assert db.collection("products").count().get()[0][0].value == 200
    seen = []
    page = db.collection("products").order_by("price", direction="DESCENDING").limit(30)
    while True:
        documents = page.get()
        if not documents:
            break
        seen += [document.id for document in documents]
        page = db.collection("products").order_by("price", direction="DESCENDING").start_after(documents[-1]).limit(30)
    assert seen == [f"p{number:03d}" for number in reversed(range(200))]
    tell("200 products written in a batch, counted, and paged through in seven pages")


def order(db, customer, product, quantity):
    """One order: the stock is taken and the order written in one transaction."""

    @firestore.transactional
    def run(transaction):
        snapshot = product.get(transaction=transaction)
        left = snapshot.get("stock") - quantity
        if left < 0:
            return False
        transaction.update(product, {"stock": left, "sold": Increment(quantity)})
        line = db.collection("customers").document(customer).collection("orders").document()
        transaction.create(line, {"product": product, "quantity": quantity, "at": firestore.SERVER_TIMESTAMP})
        return True

    return run(db.transaction())


def shop(db):
    product = db.collection("products").document("p007")
    taken = [order(db, f"customer-{number}", product, 3) for number in range(5)]
    assert taken == [True, True, True, False, False]
    snapshot = product.get()
    assert (snapshot.get("stock"), snapshot.get("sold")) == (1, 9)
    orders = list(db.collection_group("orders").where(filter=FieldFilter("quantity", "==", 3)).stream())
    assert len(orders) == 3 and all(order.get("product") == product for order in orders)
    assert all(isinstance(order.get("at"), datetime.datetime) for order in orders)
    tell("orders in transactions take stock exactly, and refuse when there is none; a collection group finds them")


def search(db):
    cheap_or_new = Or([FieldFilter("price", "<", 6), And([FieldFilter("tags", "array_contains", "new"), FieldFilter("price", ">=", 297)])])
    found = sorted(document.id for document in db.collection("products").where(filter=cheap_or_new).stream())
    assert found == ["p000", "p001", "p002", "p003", "p199"]
    total = db.collection("products").where(filter=FieldFilter("price", "<", 15)).sum("price").avg("price").get()
    assert {result.alias: result.value for result in total[0]} == {"field_1": 67.5, "field_2": 6.75}
    tell("AND within OR, sums and averages")


def upkeep(db):
    product = db.collection("products").document("p100")
    product.update({"name": DELETE_FIELD, "sizes.large": 1, "tags": firestore.ArrayUnion(["sale", "sale"])})
    assert product.get().to_dict() == {"price": 150.0, "stock": 10, "tags": ["sale"], "sizes": {"large": 1}}
    writer = db.bulk_writer()
    for number in range(100, 200):
        writer.update(db.collection("products").document(f"p{number}"), {"discontinued": True})
    writer.close()
    gone = db.collection("products").where(filter=FieldFilter("discontinued", "==", True)).get()
    assert len(gone) == 100
    assert db.recursive_delete(db.collection("customers")) == 3
    assert [collection.id for collection in db.collections()] == ["products"]
    tell("field deletes, array unions, 100 updates by a bulk writer, a recursive delete")


async def at_once(app):
    db = firestore_async.client(app)
    counter = db.collection("counters").document("visits")
    await counter.set({"n": 0})
    await asyncio.gather(*(counter.update({"n": Increment(1)}) for _ in range(100)))
    assert (await counter.get()).get("n") == 100
    names = [document.id async for document in db.collection("products").limit(5).stream()]
    assert names == [f"p{number:03d}" for number in range(5)]
    tell("100 increments at once through the asynchronous client")


def main():
    app = firebase_admin.initialize_app(Credential(), {"projectId": "admin-tour"})
    db = firestore.client(app)
    stock(db)
    shop(db)
    search(db)
    upkeep(db)
    asyncio.run(at_once(app))
    other = firestore.client(app, database_id="another")
    assert list(other.collections()) == []
    tell("another database of the project is empty")
    print(f"all {len(done)} parts of the tour passed")


if __name__ == "__main__":
    main()
