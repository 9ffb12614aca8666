// Every call of the SDK's pipelines as user code writes it, as in `Surface`. That this file compiles without a warning
// in language modes 5 and 6 is the test (`SurfaceTests`).

import FirebaseFirestore

enum PipelineSurface {
    // MARK: Stages

    static func sources(_ db: Firestore, _ query: Query) -> [Pipeline] {
        let source: PipelineSource = db.pipeline()
        return [
            source.collection("c"), source.collection("c", forceIndex: "i"), source.collection(db.collection("c")),
            source.collection(db.collection("c"), forceIndex: "i"), source.collectionGroup("c"),
            source.collectionGroup("c", forceIndex: "i"), source.database(), source.documents(["c/d"]),
            source.documents([db.document("c/d")]), source.create(from: query), Subcollection("c"),
        ]
    }

    static func stages(_ pipeline: Pipeline, _ condition: any BooleanExpression) async throws {
        let named: AliasedExpression = Field("a").as("b")
        let totals: [AliasedAggregate] = [CountAll().as("n"), Field("a").sum().as("s")]
        let orders: [Ordering] = [Field("a").ascending(), Field("b").descending()]
        let direction: Direction = orders[0].direction
        let sorted: any Expression = orders[0].expression
        let changed: Pipeline = pipeline.addFields([named]).removeFields(["a"]).removeFields([Field("a")])
            .select([named, Field("a")]).select(["a"]).where(condition).offset(1).limit(2).define([named])
            .distinct(["a"]).distinct([named]).aggregate(totals).aggregate(totals, groups: [Field("g")])
            .sort(orders).replace(with: "m").replace(with: MapExpression([:])).sample(count: 1).sample(percentage: 0.5)
            .union(with: pipeline).unnest(Field("a")).unnest(named, indexField: "i")
            .findNearest(field: Field("v"), vectorValue: VectorValue([1]), distanceMeasure: .cosine)
            .findNearest(
                field: Field("v"), vectorValue: VectorValue([1]), distanceMeasure: .dotProduct, limit: 1,
                distanceField: "d"
            )
            .search(query: "w").search(query: DocumentMatches("w"))
            .search(
                query: DocumentMatches("w"), languageCode: "en", retrievalDepth: 1, sort: [Score().descending()],
                offset: 0, limit: 1, addFields: [Score().as("score")]
            )
            .rawStage(name: "s", params: [1, ["a": Field("a")], CountAll()])
            .rawStage(name: "s", params: [], options: ["o": 1])
        let subqueries: [any Expression] = [changed.toArrayExpression(), changed.toScalarExpression()]
        let snapshot: Pipeline.Snapshot = try await changed.execute()
        let time: Timestamp = snapshot.executionTime
        let results: [PipelineResult] = snapshot.results
        let reference: DocumentReference? = results[0].ref
        let id: String? = results[0].id
        let times: [Timestamp?] = [results[0].createTime, results[0].updateTime]
        let data: [String: Sendable?] = results[0].data
        let value: Sendable? = results[0].get("a")
        print(results[0].get(FieldPath(["a"])) ?? 0, results[0].get(Field("a")) ?? 0, data["a"] as? Int ?? 0)
        print(time, reference as Any, id as Any, times, value as Any, subqueries, direction.rawValue, sorted)
    }

    // MARK: Expressions

    static func expressions(_ db: Firestore) -> [any Expression] {
        let text: String = Field(FieldPath(["a"])).fieldName
        let ascending: any Expression = Variable("v")
        let function: FunctionExpression = FunctionExpression(functionName: "f", args: [ascending])
        let condition: any BooleanExpression = function.asBoolean()
        let map: FunctionExpression = MapExpression(["a": 1, "b": Field("b"), "c": [1, 2], "d": ["e": 2]])
        return [
            Constant(1), Constant(1.5), Constant(text), Constant(true), Constant(Data()), Constant(Date()),
            Constant(GeoPoint(latitude: 1, longitude: 2)), Constant(Timestamp()), Constant(db.document("c/d")),
            Constant(VectorValue([1])), Constant.nil, CurrentDocument(), map, ArrayExpression([1, Field("a"), "x"]),
            FunctionExpression(functionName: "f", args: [], options: ["o": 1]), CurrentTimestamp(), RandomExpression(),
            rand(), ErrorExpression("e"), Score(), ConditionalExpression(condition, then: map, else: function),
            switchOn(condition, map), switchOn(condition, map, condition, function, Constant(1)),
            Field("p").geoDistance(GeoPoint(latitude: 1, longitude: 2)), Field("t").snippet("w"),
            Field("t").snippet("w", maxSnippetWidth: 80, maxSnippets: 2, separator: "..."),
        ]
    }

    static func conditions(_ a: Field, _ b: any Expression) -> [any BooleanExpression] {
        let conditions: [any BooleanExpression] = [
            a.equal(1), a.equal(b), a.notEqual("x"), a.notEqual(b), a.lessThan(1), a.lessThan(b), a.lessThanOrEqual(1),
            a.lessThanOrEqual(b), a.greaterThan(1), a.greaterThan(b), a.greaterThanOrEqual(1), a.greaterThanOrEqual(b),
            a.between(1, 2), a.between(b, b), a.equalAny([1, "x"]), a.equalAny([b, b]), a.equalAny(b),
            a.notEqualAny([1, "x"]), a.notEqualAny([b]), a.notEqualAny(b), a.exists(), a.isError(), a.isAbsent(),
            a.arrayContains(1), a.arrayContains(b), a.arrayContainsAll([1, "x"]), a.arrayContainsAll([b]),
            a.arrayContainsAll(b), a.arrayContainsAny([1, "x"]), a.arrayContainsAny([b]), a.arrayContainsAny(b),
            a.like("x%"), a.like(b), a.regexContains("x"), a.regexContains(b), a.regexMatch("x"), a.regexMatch(b),
            a.stringContains("x"), a.stringContains(b), a.startsWith("x"), a.startsWith(b), a.endsWith("x"),
            a.endsWith(b), a.isType("string"), a.asBoolean(), Constant(true).asBoolean(), DocumentMatches("x"),
        ]
        let all = conditions.reduce(conditions[0]) { $0 && $1 }
        return [all && a.exists(), all || a.exists(), all ^ a.exists(), !all, nor(all), nor(all, all), nor(conditions)]
    }

    static func totals(_ a: Field) -> [AggregateFunction] {
        [
            a.count(), a.countDistinct(), a.sum(), a.average(), a.minimum(), a.maximum(), a.first(), a.last(),
            a.arrayAgg(), a.arrayAggDistinct(), a.exists().countIf(), CountAll(),
            AggregateFunction(functionName: "f", args: [a]),
        ]
    }

    static func numbers(_ a: Field, _ b: any Expression) -> [FunctionExpression] {
        [
            a.add(1), a.add(b), a.subtract(1), a.subtract(b), a.multiply(1), a.multiply(b), a.divide(1), a.divide(b),
            a.mod(1), a.mod(b), a.pow(2), a.pow(b), a.abs(), a.ceil(), a.floor(), a.round(), a.trunc(),
            a.truncToPrecision(1), a.truncToPrecision(b), a.sqrt(), a.exp(), a.ln(), a.logicalMaximum([1, 2]),
            a.logicalMaximum([b]), a.logicalMinimum([1, 2]), a.logicalMinimum([b]), a.vectorLength(),
            a.cosineDistance(b), a.cosineDistance(VectorValue([1])), a.cosineDistance([1.0]), a.dotProduct(b),
            a.dotProduct(VectorValue([1])), a.dotProduct([1.0]), a.euclideanDistance(b),
            a.euclideanDistance(VectorValue([1])), a.euclideanDistance([1.0]),
        ]
    }

    static func strings(_ a: Field, _ b: any Expression) -> [FunctionExpression] {
        [
            a.length(), a.charLength(), a.byteLength(), a.toLower(), a.toUpper(), a.trim(), a.trim("x"), a.trim(b),
            a.ltrim(), a.ltrim("x"), a.ltrim(b), a.rtrim(), a.rtrim("x"), a.rtrim(b), a.stringRepeat(2),
            a.stringRepeat(b), a.stringReplaceAll("x", with: "y"), a.stringReplaceAll(b, with: b),
            a.stringReplaceOne("x", with: "y"), a.stringReplaceOne(b, with: b), a.stringIndexOf("x"),
            a.stringIndexOf(b), a.stringConcat(["x", b]), a.stringConcat([b]), a.reverse(), a.stringReverse(),
            a.substring(position: 1), a.substring(position: 1, length: 2), a.substring(position: b),
            a.substring(position: b, length: b), a.split(delimiter: ","), a.split(delimiter: b), a.join(delimiter: ","),
            a.concat(["x", b]), a.regexFind("x"), a.regexFind(b), a.regexFindAll("x"), a.regexFindAll(b),
            a.documentId(), a.collectionId(), a.parent(), a.type(), a.ifError(1), a.ifError(b), a.ifAbsent(1),
            a.ifNull(1), a.ifNull(b), a.coalesce([b, Constant(1)]),
        ]
    }

    static func collections(_ a: Field, _ b: any Expression) -> [FunctionExpression] {
        [
            a.arrayReverse(), a.arrayConcat([b]), a.arrayConcat([[1, "x"], [2]]), a.arrayLength(),
            a.arrayFilter(alias: "e", filter: Variable("e").greaterThan(1)),
            a.arrayTransform(elementAlias: "e", transform: Variable("e").add(1)),
            a.arrayTransformWithIndex(elementAlias: "e", indexAlias: "i", transform: Variable("i")),
            a.arraySlice(offset: 1), a.arraySlice(offset: b), a.arraySlice(offset: 1, length: 2),
            a.arraySlice(offset: b, length: b), a.arraySlice(offset: 1, length: b), a.arraySlice(offset: b, length: 2),
            a.arrayFirst(), a.arrayFirstN(1), a.arrayFirstN(b), a.arrayLast(), a.arrayLastN(1), a.arrayLastN(b),
            a.arrayGet(1), a.arrayGet(b), a.arrayIndexOf(1), a.arrayIndexOf(b), a.arrayLastIndexOf("x"),
            a.arrayLastIndexOf(b), a.arrayIndexOfAll(1), a.arrayIndexOfAll(b), a.arrayMaximum(), a.arrayMinimum(),
            a.arrayMaximumN(1), a.arrayMaximumN(b), a.arrayMinimumN(1), a.arrayMinimumN(b), a.getField("x"),
            a.getField(b), a.mapGet("x"), a.mapRemove("x"), a.mapRemove(b), a.mapMerge([["x": 1, "y": "z"]]),
            a.mapMerge([b]), a.mapSet("x", 1), a.mapSet("x", 1, "y", "z"), a.mapSet(b, b), a.mapSet(b, b, b, b),
            a.mapKeys(), a.mapValues(), a.mapEntries(),
        ]
    }

    static func times(_ a: Field, _ b: any Expression) -> [FunctionExpression] {
        let units: [TimeUnit] = [.microsecond, .millisecond, .second, .minute, .hour, .day]
        let granularities: [TimeGranularity] = [.week, .weekMonday, .isoweek, .month, .quarter, .year, .isoyear]
        let parts: [TimePart] = [.dayOfWeek, .dayOfYear, .week, .weekSunday, .isoweek, .isoyear]
        print(units[0].rawValue, granularities[0].rawValue, parts[0].rawValue)
        return [
            a.unixMicrosToTimestamp(), a.timestampToUnixMicros(), a.unixMillisToTimestamp(), a.timestampToUnixMillis(),
            a.unixSecondsToTimestamp(), a.timestampToUnixSeconds(), a.timestampTruncate(granularity: .day),
            a.timestampTruncate(granularity: "day"), a.timestampTruncate(granularity: b),
            a.timestampTruncate(granularity: .day, timezone: "UTC"),
            a.timestampTruncate(granularity: "day", timezone: "UTC"), a.timestampDiff(b, .day),
            a.timestampDiff(b, "day"), a.timestampDiff(b, b), a.timestampExtract(part: .year),
            a.timestampExtract(part: "year"), a.timestampExtract(part: b),
            a.timestampExtract(part: .year, timezone: "UTC"), a.timestampExtract(part: "year", timezone: b),
            a.timestampAdd(1, .day), a.timestampAdd(amount: b, unit: TimeUnit.day),
            a.timestampAdd(amount: b, unit: "day"),
            a.timestampSubtract(1, .day), a.timestampSubtract(amount: b, unit: TimeUnit.day),
            a.timestampSubtract(amount: b, unit: b),
        ]
    }
}
